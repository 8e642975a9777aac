"""What the check for overflow and the watching of a training cost: a step with them against one without, in one run."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "imagenet"))

import torch  # noqa: E402
from resnet import resnet_tiny  # noqa: E402
from torch import nn  # noqa: E402

from torchferry.accuracy.overflow import check_block  # noqa: E402
from torchferry.accuracy.watch import watching  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Step = Callable[[], None]
ROUNDS = 7
BLOCK_SECONDS = 0.2
_NEVER = 1 << 40


def main() -> None:
    """Print the table."""
    print(f"torch {torch.__version__}, {DEVICE}, {torch.get_num_threads()} threads")
    print(f"{'model':<24} {'step ms':>9} {'overflow':>9} {'watched':>9} {'between':>9}   times a plain step")
    for name, make, shape in (
        ("MLP, launch-bound", _mlp, (32, 64)),
        ("MLP, compute-bound", _wide, (256, 1024)),
        ("small ResNet", resnet_tiny, (8, 3, 32, 32)),
    ):
        step = _training(make(), shape)
        plain, *ratios = _measured(step)
        print(f"{name:<24} {plain * 1e3:>9.2f} " + " ".join(f"{ratio:>9.3f}" for ratio in ratios))


def _mlp() -> nn.Module:
    return nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.ReLU())))


def _wide() -> nn.Module:
    return nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.ReLU())))


def _training(model: nn.Module, shape: tuple[int, ...]) -> Step:
    model.to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    data = torch.randn(shape, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    return step


def _measured(step: Step) -> tuple[float, float, float, float]:
    """Seconds of a plain step, and the others as ratios to it; blocks are taken in turns."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.h5"
        ways: dict[str, Callable[[], AbstractContextManager[Any]]] = {
            "plain": nullcontext,
            "overflow": check_block,
            "watched": lambda: watching(file, every=1),
            "between": lambda: watching(file, every=_NEVER),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        _seconds(step, 3)
        count = max(3, int(BLOCK_SECONDS / _seconds(step, 3)))
        for _ in range(ROUNDS):
            for name, way in ways.items():
                with way():
                    _seconds(step, 3)  # the first one is watched in any case
                    times[name].append(_seconds(step, count if name != "watched" else 3))
    plain = statistics.median(times["plain"])
    overflow, watched, between = (
        statistics.median(one / other for one, other in zip(times[name], times["plain"], strict=True))
        for name in ("overflow", "watched", "between")
    )
    return plain, overflow, watched, between


def _seconds(step: Step, count: int) -> float:
    _wait()
    began = time.perf_counter()
    for _ in range(count):
        step()
    _wait()
    return (time.perf_counter() - began) / count


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
