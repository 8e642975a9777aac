import torch
from torch import nn


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, padding=1)
        self.up = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, x):
        x = x.to(memory_format=torch.channels_last)
        return self.up(torch.relu(self.down(x)))
