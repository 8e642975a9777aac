"""Small checkpoints as programs save them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from torchferry.checkpoint.writing import write_torch


class Settings:
    """A class of the program that trained: nobody else has it."""

    lr = 0.1


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))


def nested(
    path: Path, *, prefix: str = "module.", device: str = "npu:0", args: bool = False, **save: Any
) -> Path:
    """What a training leaves: weights, optimizer, epoch; saved on a device whose plugin is not here."""
    trained = model()
    optimizer = torch.optim.SGD(trained.parameters(), 0.1, momentum=0.9)
    trained(torch.randn(2, 3, 8, 8)).sum().backward()
    optimizer.step()
    weights = {f"{prefix}{name}": tensor for name, tensor in trained.state_dict().items()}
    tree: dict[str, Any] = {"epoch": 3, "state_dict": weights, "optimizer": optimizer.state_dict()}
    if args:
        tree["args"] = Settings()
    if save:
        torch.save(tree, path, **save)
    else:
        momenta = [each["momentum_buffer"] for each in tree["optimizer"]["state"].values()]
        stored = [*weights.values(), *momenta]
        write_torch(path, tree, {tensor.untyped_storage()._cdata: device for tensor in stored})
    return path


def bits(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist())
