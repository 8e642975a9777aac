"""Sorts readings of sensors: a small program for one GPU, in which something can be made to go wrong.

--wrong-kernel gives an accelerator other than CUDA a GELU that leaves the end of its result unwritten, as a kernel does
that computes in tiles and forgets the last one. --half computes in float16, in which the squares of RMSNorm overflow.
"""

import argparse
import warnings

import torch
from torch import nn

SENSORS, KINDS = 50, 4


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Sorter(nn.Module):
    def __init__(self, width=100):
        super().__init__()
        self.first = nn.Linear(SENSORS, width)
        self.norm = RMSNorm(width)
        self.body = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.last = nn.Linear(width, KINDS)

    def forward(self, x):
        return self.last(self.body(self.norm(self.first(x))))


def forgetful_gelu(x, *, approximate="none"):
    result = nn.functional.gelu(x.cpu(), approximate=approximate)
    result.view(-1)[x.numel() // 1024 * 1024 :] = 0
    return result.to(x.device)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--wrong-kernel", action="store_true")
    args = parser.parse_args()
    if args.wrong_kernel:
        kernels = torch.library.Library("aten", "IMPL", "PrivateUse1")
        with warnings.catch_warnings():  # it takes the place of another one
            warnings.simplefilter("ignore")
            kernels.impl("gelu", forgetful_gelu)

    torch.manual_seed(0)
    device = torch.device("cuda")
    dtype = torch.float16 if args.half else torch.float32
    typical = torch.randn(KINDS, SENSORS) * 100
    model = Sorter().to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(args.steps):
        kinds = torch.randint(KINDS, (args.batch_size,))
        readings = typical[kinds] + torch.randn(args.batch_size, SENSORS) * 300
        answers = model(readings.to(device, dtype))
        loss = nn.functional.cross_entropy(answers.float(), kinds.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
