"""What comparing costs: tensors of two records, against copying the same bytes and against numpy, in turns in one run."""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from torchferry.accuracy.compare.figures import Figures
from torchferry.accuracy.compare.threads import thread_count
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, Header, Kept, TensorRecord
from torchferry.accuracy.native import differences, standin
from torchferry.accuracy.native.library import NUMBERS
from torchferry.accuracy.native.statistics import ROW, statistics_into

ROUNDS = 5
GIGA = 1e9
LARGE = (2048, 1024)  # float32: 8 MB
LARGE_CALLS, SMALL_CALLS, MEMORY_CALLS = 48, 5000, 160
Array = np.ndarray


def main() -> None:
    """Print the tables."""
    print(
        f"{time.strftime('%Y-%m-%d')}, {thread_count()} cores; processor time, medians of {ROUNDS} rounds in turns"
    )
    with tempfile.TemporaryDirectory() as folder:
        measure_speed(Path(folder))
        measure_small(Path(folder))
        measure_orders(Path(folder))
        measure_memory(Path(folder))
    measure_statistics()
    measure_dtypes()


def write(path: Path, calls: int, shape: tuple[int, ...], noise: float, channels_last: bool = False) -> None:
    """A record of calls with an output of this shape: random numbers, and as much noise."""
    writer = RecordWriter(path, Header(Kept.TENSORS, "train.py", "cpu", ""))
    stride = tuple(int(np.prod(shape[at + 1 :])) for at in range(len(shape)))
    if channels_last:
        _, c, h, w = shape
        stride = (c * h * w, 1, w * c, c)
    for number in range(1, calls + 1):
        values = np.random.default_rng(number % 8).standard_normal(shape, np.float32)
        values += np.float32(noise) * np.random.default_rng(number).standard_normal(shape, np.float32)
        lying = values.transpose(0, 2, 3, 1).copy() if channels_last else values
        offset = writer.append(lying.tobytes())
        kept = TensorRecord("output/output_0", "float32", shape, stride, "cpu", offset=offset)
        writer.write(Call(number, "aten::relu", 1, "forward", outputs=(kept,)))
    writer.close()


def pairs_of(mine: Record, golden: Record) -> list[tuple[TensorRecord, TensorRecord]]:
    """All outputs."""
    return [(x.outputs[0], y.outputs[0]) for x, y in zip(mine.calls, golden.calls, strict=True)]


def opened(folder: Path, name: str) -> tuple[Record, Record]:
    """Mine and golden."""
    return open_record(folder / f"{name}_mine.h5"), open_record(folder / f"{name}_golden.h5")


def in_turns(
    clock: Callable[[], float] = time.process_time, **works: Callable[[], object]
) -> dict[str, float]:
    """Median seconds of each; of the processors, unless another clock is given."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = clock()
            work()
            times[name].append(clock() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def measure_speed(folder: Path) -> None:
    """Large tensors: bytes a second, of both sides together."""
    write(folder / "large_mine.h5", LARGE_CALLS, LARGE, 1e-6)
    write(folder / "large_golden.h5", LARGE_CALLS, LARGE, 0)
    mine, golden = opened(folder, "large")
    pairs = pairs_of(mine, golden)
    nbytes = sum(x.nbytes + y.nbytes for x, y in pairs)
    buffer = np.empty(np.prod(LARGE), np.float32)

    def copy() -> None:
        for x, y in pairs:
            np.copyto(buffer, mine.array(x))
            np.copyto(buffer, golden.array(y))

    def plain_numpy() -> None:
        for x, y in pairs:
            six_metrics(mine.array(x), golden.array(y))

    def ours(threads: int) -> None:
        figures = Figures(mine, golden)
        with ThreadPoolExecutor(threads) as executor:
            for _ in executor.map(lambda pair: figures.difference(*pair), pairs):
                pass

    found = in_turns(copy=copy, numpy=plain_numpy, ours=lambda: ours(1))
    print(f"\nlarge tensors, {nbytes / GIGA:.2f} GB in two files   GB/s of a core   over copying")
    for name, label in {
        "copy": "copied with memcpy",
        "numpy": "six metrics with numpy",
        "ours": "all figures",
    }.items():
        print(f"{label:<38} {nbytes / found[name] / GIGA:8.2f} {found[name] / found['copy']:14.2f}")
    wall = in_turns(time.perf_counter, one=lambda: ours(1), all=lambda: ours(thread_count()))
    for name, threads in (("one", 1), ("all", thread_count())):
        print(f"{f'all figures, {threads} threads, by the clock':<38} {nbytes / wall[name] / GIGA:8.2f}")


def six_metrics(mine: Array, golden: Array) -> tuple[float, ...]:
    """As one writes them: cosine, max abs, max rel, relative Euclidean, mean rel, share within 1e-3."""
    difference = np.abs(mine - golden)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = difference / np.abs(golden)
    norm = np.linalg.norm(golden)
    return (
        float(mine @ golden / (np.linalg.norm(mine) * norm)),
        float(difference.max()),
        float(relative.max()),
        float(np.linalg.norm(difference) / norm),
        float(relative.mean()),
        float((relative < 1e-3).mean()),
    )


def measure_small(folder: Path) -> None:
    """Small tensors: how many a second."""
    write(folder / "small_mine.h5", SMALL_CALLS, (16, 16), 1e-6)
    write(folder / "small_golden.h5", SMALL_CALLS, (16, 16), 0)
    mine, golden = opened(folder, "small")
    pairs = pairs_of(mine, golden)

    def ours() -> None:
        figures = Figures(mine, golden)
        for pair in pairs:
            figures.difference(*pair)

    def plain_numpy() -> None:
        for x, y in pairs:
            six_metrics(mine.array(x), golden.array(y))

    found = in_turns(numpy=plain_numpy, ours=ours)
    print("\ntensors of 256 elements                tensors/s, one thread")
    print(f"{'six metrics with numpy':<38} {SMALL_CALLS / found['numpy']:8.0f}")
    print(f"{'all figures':<38} {SMALL_CALLS / found['ours']:8.0f}")


def measure_orders(folder: Path) -> None:
    """One in channels_last, the other not."""
    shape = (16, 128, 32, 32)
    write(folder / "order_mine.h5", 8, shape, 1e-6, channels_last=True)
    write(folder / "order_golden.h5", 8, shape, 0)
    mine, golden = opened(folder, "order")
    pairs = pairs_of(mine, golden)
    nbytes = sum(x.nbytes + y.nbytes for x, y in pairs)

    def ours() -> None:
        figures = Figures(mine, golden)
        for pair in pairs:
            figures.difference(*pair)

    seconds = in_turns(ours=ours)["ours"]
    print(f"\n{'channels_last against contiguous':<38} {nbytes / seconds / GIGA:8.2f} GB/s, one thread")


def measure_memory(folder: Path) -> None:
    """The largest size of a process that compares two files of more than a gigabyte."""
    write(folder / "much_mine.h5", MEMORY_CALLS, LARGE, 1e-6)
    write(folder / "much_golden.h5", MEMORY_CALLS, LARGE, 0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        mine, golden = opened(folder, "much")
        figures = Figures(mine, golden)
        with ThreadPoolExecutor(thread_count()) as executor:
            for _ in executor.map(lambda pair: figures.difference(*pair), pairs_of(mine, golden)):
                pass
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(writing, str(peak).encode())
        os._exit(0)
    os.waitpid(child, 0)
    peak = int(os.read(reading, 100))
    size = sum((folder / f"much_{side}.h5").stat().st_size for side in ("mine", "golden"))
    print(f"\n{'two files, together':<38} {size / 1e6:8.0f} MB")
    print(f"{'largest size of the process':<38} {peak / 1e6:8.0f} MB")


def measure_statistics() -> None:
    """Statistics of a tensor in memory, and of a small one."""
    values = np.random.default_rng(0).standard_normal(16 << 20, np.float32)
    target = np.empty_like(values)
    row = ctypes.create_string_buffer(ROW.size)
    address, place, few = values.ctypes.data, ctypes.addressof(row), 10_000

    def small() -> None:
        for _ in range(few):
            statistics_into(address, "float32", 64, place)

    found = in_turns(
        copy=lambda: np.copyto(target, values),
        ours=lambda: statistics_into(address, "float32", values.size, place),
        standin=lambda: standin.statistics_at(address, NUMBERS["float32"], values.size, place),
        small=small,
    )
    print("\nstatistics of float32                     GB/s   over copying")
    for name, label in {"copy": "copied", "ours": "statistics", "standin": "without a compiler"}.items():
        print(f"{label:<38} {values.nbytes / found[name] / GIGA:8.2f} {found[name] / found['copy']:8.2f}")
    print(f"{'a tensor of 64 elements':<38} {found['small'] / few * 1e6:8.2f} us")


def measure_dtypes() -> None:
    """Figures of arrays in memory, by dtype: all elements differ, or none."""
    print("\ndtype          all differ   none   without a compiler   (GB/s, one thread)")
    for dtype, mine, golden in arrays():

        def ours(mine: Array = mine, golden: Array = golden, dtype: str = dtype) -> object:
            return differences.compare_arrays(mine, golden, dtype, dtype)

        def none(golden: Array = golden, dtype: str = dtype) -> object:
            return differences.compare_arrays(golden, golden.copy(), dtype, dtype)

        def numpy(mine: Array = mine, golden: Array = golden, dtype: str = dtype) -> object:
            return standin.differences_of(
                standin.components(mine, dtype),
                standin.components(golden, dtype),
                NUMBERS[dtype],
                NUMBERS[dtype],
            )

        found = in_turns(ours=ours, none=none, numpy=numpy)
        speeds = (2 * mine.nbytes / found[name] / GIGA for name in ("ours", "none", "numpy"))
        print(f"{dtype:<14} {next(speeds):10.2f} {next(speeds):6.2f} {next(speeds):20.2f}")


def arrays() -> Iterator[tuple[str, Array, Array]]:
    """Two megabytes and more of each dtype, as records give them."""
    golden = np.random.default_rng(0).standard_normal(1 << 21) * 100
    mine = golden * (1 + 1e-2)
    for dtype in ("float64", "float32", "float16", "int64", "int32", "uint8"):
        yield dtype, mine.astype(dtype), golden.astype(dtype)
    bits = [each.astype(np.float32).view(np.uint32) >> 16 for each in (mine, golden)]
    yield "bfloat16", bits[0].astype(np.uint16), bits[1].astype(np.uint16)


if __name__ == "__main__":
    sys.exit(main())
