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
    """Has an operator that came with opset 16."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        grid = torch.linspace(-1, 1, 32).reshape(1, 4, 4, 2).expand(image.shape[0], 4, 4, 2)
        return torch.nn.functional.grid_sample(image, grid, align_corners=False)


class Spectrum(torch.nn.Module):
    """Has an operator that opset 11 has no way to write, in a layer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.block = torch.nn.Sequential(torch.nn.ReLU(), Transformed())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.block(x)
        return made


class Transformed(torch.nn.Module):
    """Fourier."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x).abs()


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


class Steep(torch.nn.Module):
    """Lets values grow, and with them the rounding errors: a difference that is large, and small for its scale."""

    def __init__(self, gain: float = 1e4) -> None:
        super().__init__()
        self.gain = gain
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layers(x) * self.gain
        return made


class Planted(torch.nn.Module):
    """Has an attribute of each sort that an exporter could get wrong."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__()
        self.gain = gain
        self.norm = torch.nn.BatchNorm2d(3, eps=1e-3)
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, padding=(1, 0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.conv(self.norm(x))
        made = torch.nn.functional.interpolate(made, size=(6, 6), mode="bilinear", align_corners=True)
        return made.transpose(2, 3).softmax(-1) * self.gain


class Dropped(torch.nn.Module):
    """Drops in inference as well."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x)


class Two(torch.nn.Module):
    """Takes a first size of up to two."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 2:
            raise ValueError("two at most")
        return x * 2


class Zero(torch.nn.Module):
    """Gives nothing but zeros, as models do whose last layer is still as it was made."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0


class Passing(torch.nn.Module):
    """Gives its input by its own name, and two outputs whose names would be the same."""

    def forward(self, mask: torch.Tensor) -> dict[str, object]:
        return {"mask": mask * 2, "a.b": mask + 1, "a": {"b": mask + 2}}
