"""A small training project, and deliveries made of it."""

from __future__ import annotations

from pathlib import Path

from torchferry.cli.main import main

PLACE = "PyTorch/contrib/Classification/Line"
TRAIN = '''"""Fit a line."""
import argparse

import torch
import torch.distributed as dist
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP


def train(steps):
    device = torch.device("cuda")
    model = torch.nn.Linear(4, 1).to(device)
    if dist.is_available() and dist.is_initialized():
        model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = GradScaler()
    for step in range(steps):
        batch = torch.randn(8, 4, device=device)
        with autocast():
            loss = (model(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"step {step} loss {loss.item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    train(parser.parse_args().steps)
'''
MIT = """MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy of this software ...
"""
ORIGINAL_LOG = "".join(f"step {step} loss {2.0 - step / 100:.4f} 900.0 images/s\n" for step in range(100))
PORT_LOG = "".join(f"step {step} loss {2.01 - step / 100:.4f} 450.0 imgs/s\n" for step in range(100))


def project(folder: Path, **more: str) -> Path:
    """The original."""
    root = folder / "original"
    root.mkdir(parents=True)
    files = {"train.py": TRAIN, "LICENSE": MIT, "README.md": "# A line\n", **more}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def logs(folder: Path) -> tuple[Path, Path]:
    """What the original and the port have printed."""
    original, port = folder / "original.log", folder / "port.log"
    original.write_text(ORIGINAL_LOG + "Acc@1 76.10\n")
    port.write_text(PORT_LOG + "accuracy@1: 76.00\n")
    return original, port


def deliver(folder: Path, *options: str, place: str = PLACE) -> Path:
    """A delivery of which everything is filled in that `new` can fill in."""
    root = project(folder)
    original, port = logs(folder)
    given = ["--from", str(root), "--arguments", "--steps 3", "--source", "https://example.com/line"]
    given += [
        "--results",
        str(port),
        "--original-results",
        str(original),
        "--commit",
        "abc",
        "--dataset",
        "none",
    ]
    assert main(["zoo", "new", str(folder / place), *given, *options]) == 0
    return folder / place


def fill_in(delivery: Path) -> None:
    """What a person writes into the READMEs."""
    for name in ("README.md", "README.en.md"):
        lines = (delivery / name).read_text("utf-8").splitlines()
        (delivery / name).write_text(
            "\n".join("It fits a line." if "<TODO" in line else line for line in lines), "utf-8"
        )
