"""A step whose operators are captured against a plain one, taken in turns in one run; and the memory of a capture."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "imagenet"))

import torch  # noqa: E402
from resnet import resnet50  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from torchferry.readiness.capture.choices import as_on_device  # noqa: E402
from torchferry.readiness.capture.mode import CapturingMode  # noqa: E402

CALLS = 100_000
LINES = 20
MEGABYTE = 1024.0  # as the kernel counts memory, in kilobytes


def main() -> None:
    """Print the tables."""
    threads = torch.get_num_threads()
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {threads} threads; wall time, pairs taken in turns"
    )
    print(f"\n{CALLS} calls, captured               rows   peak memory added, MB")
    weigh("the same shape again and again", lambda number: torch.ones(16))
    weigh("ever other shapes", lambda number: torch.ones(1 + number))
    print("\ntraining step                   plain ms    captured ms   ratio (median of pairs)")
    with as_on_device():
        compare("ResNet-50, batch 8 x 224 x 224", resnet50, torch.randn(8, 3, 224, 224), pairs=9)
        compare("MLP 256-256-256-10, batch 128", make_mlp, torch.randn(128, 256), pairs=200)
        compare("transformer layer 8 x 64 x 128", make_transformer, torch.randn(8, 64, 128), pairs=50)


def weigh(name: str, draw: Callable[[int], Tensor]) -> None:
    """One line: what so many calls from a few lines leave."""
    function = many_lines()
    mode = CapturingMode()
    before = peak_memory()
    mode.switch_on()
    for number in range(CALLS // (2 * LINES)):  # each line adds and multiplies
        function(draw(number))
    mode.switch_off()
    rows = len(mode.uses())
    print(f"{name:<30} {rows:8} {peak_memory() - before:12.1f}")


def many_lines() -> Callable[[Tensor], None]:
    """A function that calls two operators from each of its lines."""
    lines = "".join("    x * 2 + 1\n" for _ in range(LINES))
    names: dict[str, Callable[[Tensor], None]] = {}
    exec(compile(f"def function(x):\n{lines}", "lines.py", "exec"), names)
    return names["function"]


def peak_memory() -> float:
    """Of this process, until now, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE


def compare(name: str, make: Callable[[], nn.Module], x: Tensor, pairs: int) -> None:
    """One line: a plain step and a captured one, again and again."""
    step = training_step(make, x)
    for _ in range(3):
        step()
    times = [(seconds(step), captured_seconds(step)) for _ in range(pairs)]
    plain, captured = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(pair[1] / pair[0] for pair in times)
    print(f"{name:<30} {plain * 1e3:8.2f} {captured * 1e3:12.2f}   {ratio:8.3f}")


def training_step(make: Callable[[], nn.Module], x: Tensor) -> Callable[[], None]:
    """Forward, backward and SGD of a model."""
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def make_mlp() -> nn.Module:
    """About one millisecond a step."""
    return nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def make_transformer() -> nn.Module:
    """One encoder layer."""
    return nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)


def captured_seconds(step: Callable[[], None]) -> float:
    """How long a step takes whose operators are captured, from the beginning of the capture to its records."""
    mode = CapturingMode()

    def captured() -> None:
        mode.switch_on()
        step()
        mode.switch_off()
        mode.uses()

    return seconds(captured)


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
