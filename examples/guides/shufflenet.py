"""A small network with channel shuffles, as ShuffleNet V2 has them, trained on random images."""

import argparse

import torch
from torch import nn


def channel_shuffle(x, groups):
    batch, channels, height, width = x.size()
    x = x.view(batch, groups, channels // groups, height, width)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(batch, -1, height, width)


def conv(inputs, outputs, *, stride=1, groups=1):
    size = 1 if groups == 1 else 3
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(
            conv(half, half), nn.ReLU(), conv(half, half, groups=half), conv(half, half), nn.ReLU()
        )

    def forward(self, x):
        kept, worked = x.chunk(2, dim=1)
        out = torch.cat((kept, self.branch(worked)), dim=1)
        return channel_shuffle(out, 2)


class ShuffleNet(nn.Module):
    def __init__(self, classes=10, channels=48):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, channels, 3, stride=2, padding=1), nn.ReLU())
        self.blocks = nn.Sequential(*(Block(channels) for _ in range(4)))
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.blocks(self.first(x)).mean((2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = ShuffleNet().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(args.steps):
        images = torch.randn(args.batch_size, 3, 32, 32).cuda()
        target = torch.randint(10, (args.batch_size,)).cuda()
        loss = nn.functional.cross_entropy(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
