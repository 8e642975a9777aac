"""What curves cost: a page, CSV and event files of a long run and of a wide one, in times of reading the file's bytes.

With `--training`, also by how much a page that follows the run slows a training down.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torchferry.accuracy.curves import html
from torchferry.accuracy.curves.events import export
from torchferry.accuracy.curves.runs import WatchedRun
from torchferry.accuracy.curves.trends import trends_of
from torchferry.accuracy.file.writer import StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, Kept, RecordHeader, TensorRecord, TensorRef
from torchferry.accuracy.watch import rows
from torchferry.conversion.planning import cores
from torchferry.report.formats import Options

RUNS = {"100,000 steps of 4 modules": (100_000, 4), "200 steps of 2,000 modules": (200, 2000)}
ROUNDS = 3


def main() -> None:
    """Print the table."""
    print(f"{time.strftime('%Y-%m-%d')}, {cores()} cores")
    if "--training" in sys.argv:
        measure_training()
        return
    print(
        f"{'':<28} {'file':>9} {'bytes':>7} {'page':>7} {'in bytes':>9} {'size':>8} {'events':>8} {'memory':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, (steps, modules) in RUNS.items():
            measure(name, write(Path(folder) / f"{modules}.h5", steps, modules), Path(folder) / f"{modules}")


def measure(name: str, path: Path, folder: Path) -> None:
    """A line: seconds, megabytes, and the ratio to reading the file."""
    pages: list[str] = []
    whole = seconds(path.read_bytes)
    page = seconds(lambda: pages.append(html.page(trends_of([path]), Options())))
    run = WatchedRun(path)
    events = seconds(lambda: export(run, folder))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<28} {path.stat().st_size / 1e6:6.0f} MB {whole:5.2f} s {page:5.1f} s {page / whole:9.1f} "
        f"{len(pages[0]) / 1e6:5.1f} MB {events:6.1f} s {memory:6.0f} MB"
    )


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def write(path: Path, steps: int, modules: int) -> Path:
    """A file as `ferry watch` leaves it: noisy curves that fall."""
    numbers = random.Random(0)
    file = StatisticsWriter(path, RecordHeader(Kept.STATISTICS, "train.py", "cuda", ""))
    tensors = {
        shape: encoded_tensors((), [TensorRecord("output/output_0", "float32", shape, (), "cuda:0")])
        for shape in ((1,), (64, 128))
    }

    def put(step: int, row: str, module: str, value: float) -> None:
        shape = (64, 128) if module else (1,)
        number, address = file.row()
        figures = (math.prod(shape), 0, 0, 0, -3 * value, 3 * value, value, value, numbers.getrandbits(60))
        ctypes.memmove(address, ROW.pack(*figures), ROW.size)
        site = file.site(row, "forward", "Model" if module else "", module, "", "Linear" if module else "")
        file.call(step, site, file.signature((), tensors[shape], TensorRef(0)), [number])

    names = [f"layers.{number // 20}.block{number % 20}" for number in range(modules)]
    for step in range(1, steps + 1):
        level = 2 * math.exp(-3 * step / steps) + 0.5
        for row in (rows.MODULE, rows.OUTPUT_GRADIENT, rows.GRADIENT, rows.PARAMETERS, rows.UPDATE):
            for name in names:
                put(step, row, name, level * numbers.lognormvariate(0, 0.1))
        for row in (rows.LOSS, rows.GRADIENT_NORM):
            put(step, row, "", level * numbers.lognormvariate(0, 0.1))
        known = ((rows.SECONDS, round(numbers.random(), 6)), (rows.TIME, 1.7e9 + step), (rows.SKIPPED, False))
        site = file.site(rows.STEP, "optimizer", "", "", "", "")
        file.call(step, site, file.signature(known, encoded_tensors((), ()), None), [])
    file.close()
    return path


TRAINING = """\
import time, torch
from torch import nn
torch.manual_seed(0); torch.set_num_threads(1)
model = nn.Sequential(*[layer for _ in range(20) for layer in (nn.Linear(256, 256), nn.GELU())])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
began = time.perf_counter()
for step in range(400):
    optimizer.zero_grad()
    model(torch.randn(64, 256)).square().mean().backward()
    optimizer.step()
print(time.perf_counter() - began)
"""


def measure_training() -> None:
    """Seconds of a training that is watched at each tenth step, without and with a page, in turns."""
    found: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(TRAINING)
        for _ in range(ROUNDS):
            for has_page, times in found.items():
                page = ["--page", "page.html"] if has_page else []
                command = [
                    sys.executable,
                    "-m",
                    "torchferry",
                    "watch",
                    "-q",
                    "--every",
                    "10",
                    *page,
                    "train.py",
                ]
                ended = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, check=True, env={**os.environ}
                )
                times.append(float(ended.stdout))
    without, with_page = (statistics.median(times) for times in found.values())
    print(
        f"watched: {without:.1f} s; with a page that follows: {with_page:.1f} s, {with_page / without:.3f} times"
    )


if __name__ == "__main__":
    sys.exit(main())
