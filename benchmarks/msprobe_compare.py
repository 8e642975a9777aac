"""Comparing two tensor dumps of msprobe: `ferry compare` against msprobe's own compare, on the same dumps, one run.

    python benchmarks/msprobe_compare.py MSPROBE_FOLDER [LAYERS]

MSPROBE_FOLDER is where `pip install --target` has put mindstudio-probe and what it needs. The dumps have the form of
msprobe's; mine differs from golden by rounding everywhere, as those of two devices do. Both read and compare everything
and write a table; the time of starting Python and importing is in both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import torchferry.accuracy
from torchferry.accuracy.file.convert import convert_to_api_dump

WIDTH, BATCH = 1024, 256


def write_dump(folder: Path, layers: int, error: float) -> None:
    """A forward and a backward pass through some layers, as a dump."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(layers)))
    given = torch.randn(BATCH, WIDTH)
    given += error * torch.randn_like(given)
    with tempfile.TemporaryDirectory() as place:
        record = Path(place) / "record.h5"
        with torchferry.accuracy.dumper(use_dump=True, dump_path=record):
            net(given).square().mean().backward()
        convert_to_api_dump(record, folder)


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """How long a command takes; a comparison may end with any verdict."""
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(done.stderr[-2000:])
    return time.perf_counter() - started


def main(peer: str, layers: int) -> None:
    """Print both times, and the ratio."""
    with tempfile.TemporaryDirectory() as place:
        mine, golden, out = (Path(place) / name for name in ("mine", "golden", "out"))
        write_dump(mine, layers, 1e-6)
        write_dump(golden, layers, 0.0)
        nbytes = sum(file.stat().st_size for folder in (mine, golden) for file in folder.rglob("*.pt"))
        count = len(list(mine.rglob("*.pt")))
        step = [str(folder / "step0") for folder in (mine, golden)]
        own = {**os.environ, "PYTHONPATH": peer}
        theirs = [
            sys.executable,
            "-m",
            "msprobe.msprobe",
            "compare",
            "-tp",
            step[0],
            "-gp",
            step[1],
            "-o",
            str(out),
        ]
        ours = [
            sys.executable,
            "-m",
            "torchferry",
            "compare",
            *step,
            "-q",
            "-o",
            str(Path(place) / "x.msprobe.csv"),
        ]
        took = [min(seconds(*each) for _ in range(2)) for each in ((theirs, own), (ours, dict(os.environ)))]
        print(f"{count} tensors on each side, {nbytes / 1e9:.2f} GB of both")
        for name, each in zip(("msprobe", "ferry"), took, strict=True):
            print(
                f"{name:>8} {each:7.1f} s  {nbytes / 1e9 / each:6.3f} GB/s  {each / count * 1e3:6.1f} ms a tensor"
            )
        print(f"ferry takes {took[1] / took[0]:.3f} of msprobe's time")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 12)
