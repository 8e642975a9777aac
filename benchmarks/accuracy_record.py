"""What recording costs: steps that are recorded against bare ones, taken in turns in one run."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchferry.accuracy.file.background import memory_at
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record import sinks
from torchferry.accuracy.record.modules import ModuleRecorder
from torchferry.accuracy.record.recorder import Recorder
from torchferry.accuracy.record.settings import Selection
from torchferry.observe.modes import ObservingMode

Step = Callable[[], object]
# on a machine that others use as well, the time that this process has had says more than the time that passed
clock: Callable[[], float] = time.process_time if "--cpu-time" in sys.argv else time.perf_counter
NEVER = Selection(first_step=1 << 30)


class Nothing(ObservingMode):  # type: ignore[no-untyped-call]
    """What any mode costs."""

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Only make the call."""
        return func(*args, **kwargs)


class RawFile:
    """In the place of the record's writer: the same bytes, appended to a plain file, and nothing about the calls."""

    failed = ""
    most = 1 << 62

    def __init__(self, path: Path, header: RecordHeader, most: int | None = None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.nbytes = 0
        self.lock = threading.RLock()

    def append_memory(self, address: int, nbytes: int) -> int:
        """The bytes alone."""
        data, offset = memory_at(address, nbytes), self.nbytes
        while data:
            data = data[os.write(self._file, data) :]
        self.nbytes += nbytes
        return offset

    def append(self, data: bytes) -> int:
        """States of generators."""
        self.nbytes += len(data)
        return self.nbytes - os.write(self._file, data)

    def write_alike(self, *_call: Any) -> None:
        """Calls are left out."""

    def checkpoint(self) -> None:
        """Nothing to do."""

    def close(self, notes: Any = ()) -> None:
        """No more."""
        os.close(self._file)


class Block(nn.Module):
    """Of a ResNet."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Two convolutions and a way around them."""
        out = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(out)) + self.shortcut(x))


def resnet18() -> nn.Module:
    """The shape of ResNet-18, for small pictures."""
    widths = [64, 64, 128, 128, 256, 256, 512, 512]
    blocks: list[nn.Module] = []
    before = 64
    for index, width in enumerate(widths):
        blocks.append(Block(before, width, 2 if width != before and index else 1))
        before = width
    head = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*head, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Attention(nn.Module):
    """Causal, one matrix for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Written out, as small programs do."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (part.view(shape).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        scores = (query @ key.transpose(-2, -1)) * (width // self.heads) ** -0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))


class Transformer(nn.Module):
    """A small GPT."""

    def __init__(self, width: int, heads: int, layers: int, words: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(width),
                    "attention": Attention(width, heads),
                    "mlp": nn.Sequential(
                        nn.LayerNorm(width),
                        nn.Linear(width, 4 * width),
                        nn.GELU(),
                        nn.Linear(4 * width, width),
                    ),
                }
            )
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = x + layer["attention"](layer["norm"](x))
            x = x + layer["mlp"](x)
        return self.head(self.norm(x)).flatten(0, 1)


def training(
    model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, optimizer: Any, device: str
) -> Step:
    """A step of training."""
    model, inputs, targets = model.to(device), inputs.to(device), targets.to(device)
    optimizer = optimizer(model.parameters())

    def step() -> float:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def programs(device: str) -> dict[str, tuple[Step, int]]:
    """By name: a step, and how many of them are taken together."""
    torch.manual_seed(0)
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9)  # noqa: E731
    adam = lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)  # noqa: E731
    tokens, small = torch.randint(512, (8, 128)), torch.randint(64, (2, 8))
    mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    return {
        "CNN": (
            training(resnet18(), torch.randn(8, 3, 32, 32), torch.randint(10, (8,)), sgd, device), 1,
        ),
        "GPT": (
            training(Transformer(256, 8, 6, 512, 128), tokens, tokens.flatten(), adam, device), 1,
        ),
        "tiny MLP": (training(mlp, torch.randn(8, 16), torch.randint(4, (8,)), sgd, device), 60),
        "tiny transformer": (
            training(Transformer(16, 2, 2, 64, 8), small, small.flatten(), adam, device), 15,
        ),
    }  # fmt: skip


def seconds(step: Step, steps: int, device: str) -> float:
    """A step, in a block of them."""
    start = clock()
    for _ in range(steps):
        step()
    if device != "cpu":
        torch.cuda.synchronize()
    return (clock() - start) / steps


def watched(step: Step, steps: int, device: str) -> float:
    """Under a mode that does nothing."""
    mode = Nothing()
    mode.switch_on()
    try:
        return seconds(step, steps, device)
    finally:
        mode.switch_off()


def recorded(
    step: Step,
    steps: int,
    device: str,
    kept: Kept,
    path: Path,
    selection: Selection | None = None,
    make: Callable[..., Any] = Recorder,
) -> tuple[float, Any]:
    """While it is being recorded; a first step is not counted: it is where signatures are written."""
    recorder = make(path, RecordHeader(kept, "benchmark", device, torch.__version__), selection)
    recorder.start()
    step()
    recorder.next_step()
    taken = seconds(step, steps, device)
    recorder.stop()
    path.unlink()  # each begins with as much free memory as the others
    return taken, recorder


def raw(step: Step, steps: int, device: str, path: Path) -> float:
    """The same contents, appended to a plain file."""
    original = sinks.RecordWriter  # type: ignore[attr-defined]
    sinks.RecordWriter = RawFile  # type: ignore[misc,assignment,attr-defined]
    try:
        return recorded(step, steps, device, Kept.TENSORS, path.with_suffix(".raw"))[0]
    finally:
        sinks.RecordWriter = original  # type: ignore[misc,attr-defined]


def plain_seconds(path: Path, nbytes: int) -> float:
    """So many bytes written to a plain file as quickly as that can be."""
    block = memoryview(os.urandom(1 << 20) * 16)
    start = clock()
    with path.open("wb", buffering=0) as file:
        for _ in range(nbytes // len(block)):
            file.write(block)
        file.write(block[: nbytes % len(block)])
    taken = clock() - start
    path.unlink()
    return taken


def shares(step: Step, device: str, path: Path) -> tuple[float, float, int]:
    """Megabytes of a step on disk, what they would be with each tensor written each time, and calls."""
    recorder = Recorder(path, RecordHeader(Kept.TENSORS, "benchmark", device, torch.__version__))
    recorder.start()
    step()
    recorder.stop()
    with open_record(path) as record:
        whole = sum(
            tensor.nbytes
            for call in record.calls
            for tensor in (*call.inputs, *call.outputs)
            if tensor.offset is not None
        )
        return path.stat().st_size / 1e6, whole / 1e6, len(record.calls)


def measure(name: str, step: Step, steps: int, rounds: int, device: str, path: Path) -> None:
    """One line: medians of the ratios of neighbouring blocks."""
    for _ in range(3):
        step()
    disk, whole, calls = shares(step, device, path)
    ratios: dict[str, list[float]] = {}
    for _ in range(rounds):
        bare = seconds(step, steps, device)
        found = {
            "off": recorded(step, steps, device, Kept.STATISTICS, path, NEVER)[0] / bare,
            "no-op": watched(step, steps, device) / bare,
            "statistics": recorded(step, steps, device, Kept.STATISTICS, path)[0] / bare,
            "modules": recorded(step, steps, device, Kept.STATISTICS, path, make=ModuleRecorder)[0] / bare,
        }
        appended = raw(step, steps, device, path)
        for kept in (Kept.TENSORS, Kept.INPUTS):
            taken = recorded(step, steps, device, kept, path)[0]
            found[kept.value] = taken / bare
            found[f"{kept.value}/raw"] = taken / appended
        found["raw"] = appended / bare
        # a step with its tensors, against one that computes and then writes as many bytes to a plain file
        plain = plain_seconds(path, steps * int(disk * 1e6)) / steps
        found["speed"] = plain / max(found["tensors"] * bare - bare, 1e-9)
        for key, ratio in {"ms": bare * 1e3, **found}.items():
            ratios.setdefault(key, []).append(ratio)
    median = {key: statistics.median(values) for key, values in ratios.items()}
    print(
        f"{name:<17}{calls:>6}{median['ms']:>9.2f}{median['off']:>7.3f}{median['no-op']:>7.2f}"
        f"{median['statistics']:>7.2f}{median['modules']:>9.2f}{median['raw']:>8.2f}{median['tensors']:>9.2f}"
        f"{median['tensors/raw']:>7.2f}{min(median['speed'], 9.99):>7.0%}{median['inputs']:>8.2f}{disk:>9.1f}{whole:>9.1f}{disk / whole:>7.2f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", help="where the records go; default: where temporary files go")
    parser.add_argument(
        "--cpu-time", action="store_true", help="measure the processor's time, not the wall's"
    )
    parser.add_argument("only", nargs="*", help="names of programs")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {args.device}, {args.threads} threads, Python "
        f"{sys.version.split()[0]}, {'CPU' if args.cpu_time else 'wall'} time; ratios to a bare step, medians of {args.rounds} rounds taken in turns"
    )
    print(
        "program           calls  bare ms    off  no-op  stats  modules     raw  tensors   /raw  /disk  inputs  disk MB "
        "whole MB  share"
    )
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for name, (step, steps) in programs(args.device).items():
            if not args.only or name in args.only:
                measure(name, step, steps, args.rounds, args.device, Path(folder) / "record.h5")


if __name__ == "__main__":
    main()
