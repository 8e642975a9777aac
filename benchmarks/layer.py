"""What the layer costs: CUDA code under it against the same code converted by hand, taken in turns in one run."""

from __future__ import annotations

import os
import statistics
import subprocess
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

from torchferry import runtime, sim  # noqa: E402

VENDOR, DEVICE = "ascend", "npu"
MICROSECONDS = 1e6
Step = Callable[[], object]


def main() -> None:
    """Print the three tables."""
    sim.activate(VENDOR, devices=1)
    threads = torch.get_num_threads()
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {threads} threads; wall time, blocks taken in turns"
    )
    print("training loop                  converted ms   layer ms   ratio (median of pairs of blocks)")
    compare_loops("MLP, host batch", make_mlp, (64, 256), steps=60, pairs=25)
    compare_loops("small ResNet, host batch", resnet_tiny, (8, 3, 32, 32), steps=20, pairs=25)
    print("\none call                       converted us   layer us   extra us")
    for name, (converted, cuda) in CALLS.items():
        compare_calls(name, converted, cuda)
    print("\nstart, import torch, end             ms   over python")
    compare_starts()


def make_mlp(num_classes: int = 10) -> nn.Module:
    """About three milliseconds a step."""
    return nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


def compare_loops(
    name: str, make: Callable[..., nn.Module], shape: tuple[int, ...], steps: int, pairs: int
) -> None:
    """One line: blocks of steps of the converted loop without the layer and of CUDA's with it, in turns."""
    converted = training_step(DEVICE, make, shape)
    runtime.activate(VENDOR)
    under_layer = training_step("cuda", make, shape)
    runtime.deactivate()
    times = []
    for pair in range(pairs):
        order = (False, True) if pair % 2 else (True, False)
        found = {layer: block(under_layer if layer else converted, layer, steps) for layer in order}
        times.append((found[False], found[True]))
    ratio = statistics.median(layer / plain for plain, layer in times)
    plain, layer = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    print(f"{name:<30} {plain:12.3f} {layer:10.3f}   {ratio:8.3f}")


def block(step: Step, with_layer: bool, steps: int) -> float:
    """Seconds a step, in a block of them, with the layer or without it."""
    if with_layer:
        runtime.activate(VENDOR)
    for _ in range(5):
        step()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    seconds = (time.perf_counter() - start) / steps
    runtime.deactivate()
    return seconds


def training_step(device: str, make: Callable[..., nn.Module], shape: tuple[int, ...]) -> Step:
    """A step as programs write it: a batch from the host, class weights made on the device, autocast that is off, the loss read."""
    torch.manual_seed(0)
    model = make(num_classes=10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch, labels = torch.randn(shape), torch.randint(10, shape[:1])

    def step() -> None:
        x = batch.to(device, non_blocking=True)
        y = labels.to(device, non_blocking=True)
        weight = torch.ones(10, device=device)
        with torch.autocast(device, enabled=False):
            loss = nn.functional.cross_entropy(model(x), y, weight)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()

    return step


_X = torch.ones(16)
# what is called -> converted, and as CUDA code
CALLS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "tensor.cuda()": (lambda: _X.npu(), lambda: _X.cuda()),  # type: ignore[attr-defined]
    'tensor.to("cuda")': (lambda: _X.to("npu"), lambda: _X.to("cuda")),
    "tensor.to(float16)": (lambda: _X.to(torch.float16), lambda: _X.to(torch.float16)),
    'torch.zeros(4, device="cuda")': (
        lambda: torch.zeros(4, device="npu"),
        lambda: torch.zeros(4, device="cuda"),
    ),
    "torch.zeros(4)": (lambda: torch.zeros(4), lambda: torch.zeros(4)),
    'torch.device("cuda:0")': (lambda: torch.device("npu:0"), lambda: torch.device("cuda:0")),
    "device.type": (lambda: _X.device.type, lambda: _X.device.type),
    "torch.cuda.current_device()": (
        lambda: torch.npu.current_device(),  # type: ignore[attr-defined]
        lambda: torch.cuda.current_device(),
    ),
    "tensor + tensor": (lambda: _X + _X, lambda: _X + _X),
}


def compare_calls(name: str, converted: Step, cuda: Step, calls: int = 5000, rounds: int = 9) -> None:
    """One line: the quickest of several rounds of either, in turns."""
    best = {False: float("inf"), True: float("inf")}
    for _ in range(rounds):
        for layer, call in ((False, converted), (True, cuda)):
            best[layer] = min(best[layer], block(lambda call=call: call(), layer, calls))
    plain, under = best[False] * MICROSECONDS, best[True] * MICROSECONDS
    print(f"{name:<30} {plain:12.2f} {under:10.2f}   {under - plain:8.2f}")


def compare_starts(rounds: int = 11) -> None:
    """Three lines: a program that imports torch and ends, started by Python, and by `ferry run` in two ways."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text("import torch\n")
        ferry = [sys.executable, "-m", "torchferry", "run", "--quiet", "--sim", "--to", VENDOR]
        ways = {
            "python": [sys.executable, str(program)],
            "ferry run": [*ferry, str(program)],
            "ferry run --converted": [*ferry, "--converted", str(program)],
        }
        # As on a user's machine, where the second start finds the bytecode of the first.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for around in range(rounds + 1):
            for name, command in ways.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, env=environment)
                if around:
                    times[name].append(time.perf_counter() - start)
    for name, found in times.items():
        over = statistics.median(way - plain for way, plain in zip(found, times["python"], strict=True))
        print(f"{name:<30} {statistics.median(found) * 1e3:8.0f} {over * 1e3:12.0f}")


if __name__ == "__main__":
    main()
