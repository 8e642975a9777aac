"""One training step with the device in a constant, as code for one GPU often has it."""

import torch
from torch import nn

CALCULATE_DEVICE = "gpu:0"


def main():
    torch.cuda.set_device(CALCULATE_DEVICE)
    torch.manual_seed(0)
    model = nn.Linear(8, 4)
    model = model.cuda()
    model = model.to(CALCULATE_DEVICE)
    images = torch.randn(16, 8).to(CALCULATE_DEVICE)
    target = torch.randint(4, (16,)).to(CALCULATE_DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = nn.functional.cross_entropy(model(images), target)
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
