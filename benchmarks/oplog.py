"""How fast `ferry oplog` reads host logs, beside `wc -l`, and what memory that takes: `python benchmarks/oplog.py`."""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from torchferry.perf.oplog.reading import host_log_of, read_oplog

MEGABYTE = 1 << 20
SIZE = 512 * MEGABYTE
ROUNDS = 5
HEADER = "[{level}] {module}({process},python3):2024-05-06-10:{minute:02}:{second:02}.{milli:03}.{micro:03} [{place}]{process} "
SHAPES = [(64, 3, 224, 224), (64, 64, 56, 56), (64, 256, 56, 56), (64, 512, 28, 28), (64, 2048), (2048, 1000)]
TYPES = ("Conv2D", "BNTrainingReduce", "Relu", "Add", "MatMul", "TransData", "Cast", "MaxPool")


def main() -> None:
    """Two logs: as the level INFO writes them, one line of operators in thirty; and nothing but such lines."""
    print(
        f"{date.today()}, {os.cpu_count()} processors, logs of {SIZE // MEGABYTE} MiB in the page cache; wall time"
    )
    print("log                        MiB/s   wc -l MiB/s   times wc -l   memory MiB")
    with tempfile.TemporaryDirectory() as folder:
        for name, others in (("one line in thirty", 29), ("every line", 0)):
            file = Path(folder) / "plog-4242_20240506101112000.log"
            write_log(file, others)
            compare(name, file)


def write_log(file: Path, others: int) -> None:
    """A log of one process whose operators repeat."""
    chosen = random.Random(8)
    piece = "".join(
        line for number in range(4000 if others else 20000) for line in block(number, others, chosen)
    ).encode()
    with open(file, "wb") as target:
        while target.tell() < SIZE:
            target.write(piece)


def block(number: int, others: int, chosen: random.Random) -> list[str]:
    """One call of an operator, and other lines of the runtime."""
    moment = {
        "process": 4242,
        "minute": number // 60 % 60,
        "second": number % 60,
        "milli": number % 1000,
        "micro": 7,
    }
    shape = list(chosen.choice(SHAPES))
    tensor = (
        f"[TensorDesc] DataType = 1, Format = 0, StorageFormat = 3, Shape = {shape}, StorageShape = {shape}, "
        "shapeRange = [], memtype = 0, isConst = 0"
    )
    call = (
        HEADER.format(level="INFO", module="ASCENDCL", place="single_op.cpp:113", **moment)
        + f"aclopCompileAndExecute: aclopCompile::aclOp = OpType: {chosen.choice(TYPES)}, InputDesc[0]: {tensor} "
        f"OutputDesc[0]: {tensor} Attr: {{data_format = NCHW, groups = 1}}\n"
    )
    other = HEADER.format(level="INFO", module="RUNTIME", place="api_impl.cc:746", **moment) + (
        "KernelLaunch: device_id=0, stream_id=3, task_id=17, kernel_name=te_conv2d_91b8, block_dim=32, args_size=56.\n"
    )
    return [call, *[other] * others]


def compare(name: str, file: Path) -> None:
    """One line of the table; the two take turns."""
    vendor, log = host_log_of("ascend")
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        theirs.append(
            timed(lambda: subprocess.run(["wc", "-l", file], check=True, stdout=subprocess.DEVNULL))
        )
        ours.append(timed(lambda: read_oplog([file], vendor, log)))
    megabytes = file.stat().st_size / MEGABYTE
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    rates = [megabytes / statistics.median(times) for times in (ours, theirs)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        MEGABYTE if sys.platform == "darwin" else 1024
    )
    print(f"{name:<22} {rates[0]:9.0f} {rates[1]:13.0f} {ratio:13.1f} {peak:12.0f}")


def timed(work: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
