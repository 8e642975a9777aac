"""Small models with inputs and outputs of every kind."""

from __future__ import annotations

import torch


class Reader(torch.nn.Module):
    """Takes a dictionary of ids and a mask, and gives a dictionary; has attention, and CUDA's names within."""

    def __init__(self, width: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(50, width)
        self.layer = torch.nn.TransformerEncoderLayer(width, 2, 16, batch_first=True)
        self.out = torch.nn.Linear(width, classes)

    def forward(self, batch: dict[str, torch.Tensor], scale: float = 1.0) -> dict[str, object]:
        hidden = self.layer(self.words(batch["ids"]) * scale, src_key_padding_mask=batch["mask"])
        return {"logits": self.out(hidden.mean(1)), "nothing": None, "states": (hidden, hidden.amax(1))}


class Pair(torch.nn.Module):
    """Takes two tensors."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bij,bkj->bik", left, right)


class Sampled(torch.nn.Module):
    """Has an operator that opset 11 has no way to write."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        grid = torch.zeros(image.shape[0], 4, 4, 2)
        return torch.nn.functional.grid_sample(image, grid, align_corners=False)


class Normed(torch.nn.Module):
    """Computes other things in training than in inference."""

    def __init__(self, features: int = 4) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(3, features), torch.nn.BatchNorm1d(features), torch.nn.Dropout(0.5)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layers(x)
        return made


class Forgetful(torch.nn.Module):
    """A trace of it is right for one size only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * float(x.shape[0])


class Chaotic(torch.nn.Module):
    """Makes more of every rounding error, step by step."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = torch.sin(x * 30)
        return x
