"""A trainer as people write them for a GPU; it leaves a checkpoint of what DataParallel and the like put a prefix to."""

import sys

import torch
from torch import nn


class Digits(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(16, classes)

    def forward(self, images):
        return self.head(self.body(images).flatten(1))


def main(file):
    torch.manual_seed(1)
    model = Digits().cuda()
    criterion = nn.CrossEntropyLoss().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(3):
        images, labels = torch.randn(8, 1, 8, 8).cuda(), torch.randint(3, (8,)).cuda(non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
    weights = {f"module.{name}": weight for name, weight in model.state_dict().items()}
    torch.save({"epoch": 1, "state_dict": weights, "optimizer": optimizer.state_dict()}, file)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "checkpoint.pth.tar")
