"""Small data that can be learned: sentences whose class is their most frequent word group, and coloured pictures."""

from __future__ import annotations

import torch
from torch.utils.data import Dataset

WORDS = 32
LENGTH = 12
CLASSES = 4


class Sentences(Dataset):
    """Word numbers; most words of a sentence are of its class's group."""

    def __init__(self, size: int, seed: int) -> None:
        made = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(CLASSES, (size,), generator=made)
        group = WORDS // CLASSES
        own = self.labels[:, None] * group + torch.randint(group, (size, LENGTH), generator=made)
        noise = torch.randint(WORDS, (size, LENGTH), generator=made)
        self.words = torch.where(torch.rand(size, LENGTH, generator=made) < 0.8, own, noise)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.words[index], "labels": self.labels[index]}


class Counting(Dataset):
    """Texts that count upwards, for a language model: the next word follows from the last."""

    def __init__(self, size: int, seed: int) -> None:
        made = torch.Generator().manual_seed(seed)
        start = torch.randint(WORDS, (size, 1), generator=made)
        self.words = (start + torch.arange(LENGTH)) % WORDS

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.words[index], "labels": self.words[index]}
