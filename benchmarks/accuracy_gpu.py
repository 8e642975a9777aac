"""What recording, watching and comparing cost on a real GPU: ResNet-50 and a GPT of 124 million parameters, in bfloat16
autocast, recorded steps against bare ones in one process."""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import os
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record.layout import host_devices
from torchferry.accuracy.record.modules import ModuleRecorder
from torchferry.accuracy.record.recorder import Recorder
from torchferry.accuracy.record.settings import Selection
from torchferry.accuracy.watch.watcher import Watcher

Step = Callable[[], object]
NEVER = Selection(first_step=1 << 30)


class Bottleneck(nn.Module):
    """Of a ResNet-50."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Three convolutions and a way around them."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + self.downsample(x))


def resnet50() -> nn.Module:
    """The layers of ResNet-50."""
    parts: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
    ]
    parts.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(blocks):
            parts.append(Bottleneck(inputs, width, stride if index == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Layer(nn.Module):
    """Of a GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, then two linear layers."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            part.view(shape).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        attention = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Twelve layers of width 768: as many parameters as the smallest GPT-2."""

    def __init__(self, words: int = 50257, length: int = 1024, width: int = 768, layers: int = 12) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, 12) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).flatten(0, 1)


def program(name: str, device: str) -> Step:
    """A step of training."""
    torch.manual_seed(0)
    if name == "ResNet-50":
        model = resnet50().to(device)
        inputs, targets = (
            torch.randn(64, 3, 224, 224, device=device),
            torch.randint(1000, (64,), device=device),
        )
        optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    else:
        model = Gpt().to(device)
        inputs = torch.randint(50257, (4, 1024), device=device)
        targets = inputs.flatten()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            loss = functional.cross_entropy(model(inputs).float(), targets)
        loss.backward()
        optimizer.step()

    return step


def seconds(step: Step, steps: int) -> float:
    """One step, in a block of them."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


AnyRecorder = Recorder | ModuleRecorder


@contextlib.contextmanager
def recording(
    path: Path, kept: Kept, selection: Selection | None = None, make: Callable[..., AnyRecorder] = Recorder
) -> Iterator[AnyRecorder]:
    """A recorder at work; its file is removed afterwards."""
    recorder = make(path, RecordHeader(kept, "benchmark", "cuda", torch.__version__), selection)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()
        path.unlink()


def recorded(
    step: Step,
    steps: int,
    path: Path,
    kept: Kept,
    selection: Selection | None = None,
    make: Callable[..., AnyRecorder] = Recorder,
) -> float:
    """A step while it is recorded. A first one is not counted: it is where signatures are written."""
    with recording(path, kept, selection, make) as recorder:

        def whole() -> None:
            step()
            recorder.next_step()

        whole()
        return seconds(whole, steps)


def watched(step: Step, steps: int, path: Path, every: int, first: int) -> float:
    """A step while modules, gradients and parameters are watched; steps are counted from `first`."""
    watcher = Watcher(
        path, RecordHeader(Kept.STATISTICS, "benchmark", "cuda", torch.__version__), every, host_devices()
    )
    number = first
    watcher.begin(number)

    def whole() -> None:
        nonlocal number
        step()
        number += 1
        watcher.next_step(number)

    try:
        whole()
        found = seconds(whole, steps)
    finally:
        watcher.stop()
        path.unlink()
    assert not watcher.failed, watcher.failed
    return found


def measure(name: str, rounds: int, steps: int, folder: Path) -> None:
    """Medians of the ratios of neighbouring blocks."""
    step = program(name, "cuda")
    for _ in range(5):
        step()
    path = folder / "record.h5"
    ways: dict[str, Callable[[], float]] = {
        "steps that are not recorded": lambda: recorded(step, 4 * steps, path, Kept.STATISTICS, NEVER),
        "record --stats, every operator": lambda: recorded(step, steps, path, Kept.STATISTICS),
        "record --stats --modules-only": lambda: recorded(
            step, steps, path, Kept.STATISTICS, make=ModuleRecorder
        ),
        "watch, each step": lambda: watched(step, steps, path, 1, 1),
        "watch, steps between": lambda: watched(step, 4 * steps, path, 1 << 30, 2),
    }
    ratios: dict[str, list[float]] = {}
    bare_times = []
    for way in ways.values():
        way()  # what is compiled, or allocated, once
    for _ in range(rounds):
        for title, way in ways.items():
            bare = seconds(step, 4 * steps)
            bare_times.append(bare)
            ratios.setdefault(title, []).append(way() / bare)
    print(f"{name}: a bare step takes {statistics.median(bare_times) * 1e3:.1f} ms")
    for title, found in ratios.items():
        print(
            f"  {title:<34}{statistics.median(found):>8.2f} x   ({min(found):.2f} to {max(found):.2f})",
            flush=True,
        )
    with recording(path, Kept.STATISTICS) as recorder:
        step()
        recorder.next_step()
        calls = recorder.calls
    print(f"  calls of a step: {calls}; not done by kernels: {problems_of(recorder) or 'nothing'}")
    tensors(step, path, rounds)


def problems_of(recorder: AnyRecorder) -> str:
    """Why operators had to work out statistics."""
    return "; ".join(recorder.notes)


def tensors(step: Step, path: Path, rounds: int) -> None:
    """A step with all its tensors, against the disk's own speed and the link's, taken in turns."""
    with recording(path, Kept.TENSORS):
        torch.ones(1, device="cuda").neg()  # memory for copies is pinned once
    for title, make in (("all tensors", Recorder), ("modules' tensors", ModuleRecorder)):
        shares, speeds = [], []
        for _ in range(rounds):
            taken, waited, nbytes = written(step, path, make)
            raw, link = disk_seconds(path, nbytes), link_seconds(nbytes)
            shares.append(max(raw, link) / taken)
            speeds.append((nbytes / taken / 1e9, nbytes / raw / 1e9, nbytes / link / 1e9, taken, waited))
        own, disk, wire, took, last = (statistics.median(each) for each in zip(*speeds, strict=True))
        print(
            f"  record, {title}: {nbytes / 2**30:.1f} GiB in {took:.2f} s ({last:.2f} s of it after the step) = {own:.2f} GB/s; "
            f"the disk alone {disk:.2f} GB/s, the link alone {wire:.2f} GB/s; {statistics.median(shares):.0%} of the slower "
            f"({min(shares):.0%} to {max(shares):.0%})",
            flush=True,
        )


def written(step: Step, path: Path, make: Callable[..., AnyRecorder]) -> tuple[float, float, int]:
    """Seconds of a recorded step and until all is in the file, those after the step, and bytes."""
    recorder = make(path, RecordHeader(Kept.TENSORS, "benchmark", "cuda", torch.__version__))
    recorder.start()
    taken = seconds(step, 1)
    start = time.perf_counter()
    recorder.stop()
    waited = time.perf_counter() - start
    assert not recorder.failed, recorder.failed
    nbytes = path.stat().st_size
    path.unlink()
    return taken + waited, waited, nbytes


def disk_seconds(path: Path, nbytes: int) -> float:
    """So many bytes appended to a plain file, from memory that is there already."""
    block = memoryview(os.urandom(1 << 20) * 64)
    with path.open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(0, nbytes, len(block)):
            file.write(block)
        taken = time.perf_counter() - start
    path.unlink()
    return taken


def link_seconds(nbytes: int) -> float:
    """So many bytes copied from the GPU to memory that it copies to quickly."""
    source = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    target = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    return seconds(lambda: target.copy_(source, non_blocking=True), 8) * nbytes / (1 << 28)


def profile(name: str, folder: Path) -> None:
    """Where the time goes while every operator is recorded."""
    step = program(name, "cuda")
    with recording(folder / "record.h5", Kept.STATISTICS) as recorder:
        for _ in range(3):
            step()
            recorder.next_step()
        profiler = cProfile.Profile()
        profiler.enable()
        for _ in range(3):
            step()
            recorder.next_step()
        profiler.disable()
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(35)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="in a block of recorded ones")
    parser.add_argument("--folder", help="where the records go; default: where temporary files go")
    parser.add_argument("--tensors", action="store_true", help="only how quickly tensors are written")
    parser.add_argument("--profile", action="store_true", help="show where the time goes instead")
    parser.add_argument("only", nargs="*", help="ResNet-50, GPT; default: both")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("accuracy_gpu: there is no CUDA device here")
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {torch.cuda.get_device_name()}, Python "
        f"{sys.version.split()[0]}; ratios to a bare step, medians of {args.rounds} rounds taken in turns"
    )
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for name in args.only or ("ResNet-50", "GPT"):
            if args.profile:
                profile(name, Path(folder))
            elif args.tensors:
                print(name)
                step = program(name, "cuda")
                for _ in range(5):
                    step()
                tensors(step, Path(folder) / "record.h5", args.rounds)
            else:
                measure(name, args.rounds, args.steps, Path(folder))


if __name__ == "__main__":
    main()
