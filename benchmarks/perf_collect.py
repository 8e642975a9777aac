"""What profiling costs: profiled steps against bare ones, taken in turns in one run, and steps that are only counted."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "imagenet"))

import torch  # noqa: E402
from resnet import resnet_tiny  # noqa: E402
from torch import nn  # noqa: E402

from torchferry import sim  # noqa: E402
from torchferry.perf.collect.program import IterationCounter  # noqa: E402
from torchferry.perf.collect.settings import ProfileSettings  # noqa: E402
from torchferry.perf.collect.tracing import TorchTracer  # noqa: E402

STEPS, PAIRS = 3, 15
COUNTED = 20_000
Step = Callable[[], object]
HOW = {
    "stacks, shapes, memory": {},
    "no stacks": {"stacks": False},
    "no stacks, no memory": {"stacks": False, "memory": False},
}


def main() -> None:
    """Print both tables."""
    sim.activate("ascend", devices=1)
    threads = torch.get_num_threads()
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {threads} threads; wall time, taken in turns"
    )
    print("profiled steps                                bare ms   profiled ms   ratio")
    for name, make, shape in (
        ("MLP", make_mlp, (64, 256)),
        ("small ResNet", resnet_tiny, (8, 3, 32, 32)),
    ):
        step = training_step(make, shape)
        for how, settings in HOW.items():
            compare(f"{name}, {how}", step, ProfileSettings("", 1, STEPS, **settings))
    print("\nbefore the profiled steps: an optimizer's step costs more by     us")
    print(f"{'that it is counted':<60}{counting_costs():>9.2f}")


def make_mlp(num_classes: int = 10) -> nn.Module:
    """A few milliseconds a step."""
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def training_step(make: Callable[..., nn.Module], shape: tuple[int, ...]) -> Step:
    """One step on the simulated device, warm."""
    model = make(num_classes=10).to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(shape), torch.randint(10, shape[:1])

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs.to("npu")), labels.to("npu")).backward()
        optimizer.step()

    for _ in range(3):
        step()
    return step


def compare(name: str, step: Step, settings: ProfileSettings) -> None:
    """One line: blocks of steps with the profiler off and on."""
    off, on = [], []
    for _ in range(PAIRS):
        off.append(seconds_of(lambda: [step() for _ in range(STEPS)]))
        tracer = TorchTracer(settings, [torch.profiler.ProfilerActivity.CPU])
        tracer.prepare(0)
        step()
        tracer.start(1)

        def profiled(tracer: TorchTracer = tracer) -> None:
            for number in range(1, STEPS + 1):
                step()
                if number < STEPS:
                    tracer.next_step(number + 1)

        on.append(seconds_of(profiled))
        tracer.stop(STEPS, is_whole=True)
    with tempfile.TemporaryDirectory() as folder:
        tracer.write(Path(folder), "trace")
    ratio = statistics.median(mine / theirs for mine, theirs in zip(on, off, strict=True))
    milliseconds = [statistics.median(times) / STEPS * 1e3 for times in (off, on)]
    print(f"{name:<42}{milliseconds[0]:>11.2f}{milliseconds[1]:>14.2f}{ratio:>8.2f}")


def counting_costs() -> float:
    """Microseconds."""

    def idle() -> torch.optim.Optimizer:
        class Idle(torch.optim.Optimizer):
            def step(self, closure: object = None) -> None:  # type: ignore[override]
                pass

        return Idle([nn.Parameter(torch.zeros(1))], {})

    bare = idle()
    IterationCounter(lambda _step: None).watch()
    counted = idle()
    times = [
        [seconds_of(lambda each=each: [each.step() for _ in range(COUNTED)]) for each in (bare, counted)]
        for _ in range(5)
    ]
    return statistics.median((mine - theirs) / COUNTED for theirs, mine in times) * 1e6


def seconds_of(work: Callable[[], object]) -> float:
    """Wall time."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
