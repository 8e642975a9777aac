"""Pictures of digits: seven-segment figures at random places, with noise. The same index gives the same picture."""

import torch
from torch.utils.data import Dataset

# Which of the seven segments (top, upper left, upper right, middle, lower left, lower right, bottom) a digit lights.
SEGMENTS = [
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
]
PLACES = [
    ((0, 1), (1, 4)),
    ((1, 4), (0, 1)),
    ((1, 4), (4, 5)),
    ((4, 5), (1, 4)),
    ((5, 8), (0, 1)),
    ((5, 8), (4, 5)),
    ((8, 9), (1, 4)),
]


class Digits(Dataset):
    def __init__(self, length, seed=0, noise=0.3):
        self.length, self.seed, self.noise = length, seed, noise

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        label = int(torch.randint(10, (1,), generator=generator))
        top, left = torch.randint(0, 4, (2,), generator=generator).tolist()
        image = torch.zeros(12, 12)
        for lit, ((first, last), (begin, end)) in zip(SEGMENTS[label], PLACES, strict=True):
            if lit == "1":
                image[top + first : top + last, left + begin : left + end] = 1.0
        image += self.noise * torch.randn(12, 12, generator=generator)
        return image.unsqueeze(0), label
