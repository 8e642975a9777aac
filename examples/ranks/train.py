"""Trains in one process, or in several that torchrun starts; the gradients are averaged by hand."""

import argparse
import os

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SAMPLES, FEATURES, CLASSES = 64, 20, 5


def average_gradients(model, world, divide):
    for parameter in model.parameters():
        distributed.all_reduce(parameter.grad)
        if divide:
            parameter.grad.div_(world)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=8, help="samples of each process in a step")
    parser.add_argument(
        "--sum", action="store_true", help="forget to divide the gradients: a mistake to be found"
    )
    args = parser.parse_args()

    world = int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    if world > 1:
        torch.cuda.set_device(device)
        distributed.init_process_group("nccl")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(SAMPLES, FEATURES), torch.randint(CLASSES, (SAMPLES,)))
    sampler = DistributedSampler(data, shuffle=False) if world > 1 else None
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, CLASSES)).to(
        device
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for inputs, labels in DataLoader(data, batch_size=args.batch_size, sampler=sampler):
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        if world > 1:
            average_gradients(model, world, divide=not args.sum)
        optimizer.step()


if __name__ == "__main__":
    main()
