"""Points of eight Gaussians on a ring."""

import math

import torch
from torch.utils.data import Dataset


class Ring(Dataset):
    def __init__(self, length, radius=2.0, spread=0.05):
        generator = torch.Generator().manual_seed(0)
        angle = torch.randint(8, (length,), generator=generator) * (math.pi / 4)
        centre = torch.stack([angle.cos(), angle.sin()], dim=1) * radius
        self.points = centre + spread * torch.randn(length, 2, generator=generator)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return self.points[index]
