"""What the file of a record costs: calls with tensors against a raw append of the same bytes, taken in turns in one run.

python benchmarks/accuracy_file.py [--megabytes 800] [--calls 1600] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord, TensorRef

HEADER = RecordHeader(Kept.TENSORS, "benchmark", "cpu", "")
TENSORS_A_CALL, SHAPES = 2, 60  # a network has few different shapes
MICROSECONDS = 1e6


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=800)
    parser.add_argument("--calls", type=int, default=1600)
    parser.add_argument(
        "--folder", type=Path, help="where the files are written; default: a temporary folder"
    )
    args = parser.parse_args()
    print(
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores; time of the processor, taken in turns, medians of 5"
    )
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        print("tensors                            raw s   record s   ratio   file/bytes")
        compare_writes(folder, "one step of a network", args.megabytes << 20, args.calls)
        compare_writes(folder, "small tensors", 20 << 20, 5000)
        print("\none call                             us")
        time_calls(folder)
        print("\na record of 100,000 calls             s (wall)")
        time_opening(folder, 100_000)


def compare_writes(folder: Path, name: str, nbytes: int, calls: int) -> None:
    """One line: tensors whose sizes spread as those of a network do."""
    rng = np.random.default_rng(0)
    sizes = rng.choice(rng.lognormal(0.0, 2.0, SHAPES), calls * TENSORS_A_CALL)
    counts = np.maximum(1, sizes / sizes.sum() * nbytes / 4).astype(int).tolist()
    data = rng.standard_normal(max(counts)).astype("float32")
    path = folder / "file"
    times: list[tuple[float, float]] = []
    for turn in range(6):
        raw = write_raw(path, data, counts)
        path.unlink()
        record = write_record(path, data, counts)
        size = path.stat().st_size
        path.unlink()
        if turn:
            times.append((raw, record))
    plain, ours = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(ours / plain for plain, ours in times)
    print(f"{name:<30} {plain:9.3f} {ours:10.3f} {ratio:7.2f} {size / sum(counts) / 4:10.3f}")


def write_raw(path: Path, data: np.ndarray, counts: list[int]) -> float:
    """Seconds for the bytes alone."""
    memory = memoryview(data).cast("B")
    start = time.process_time()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for count in counts:
        os.write(file, memory[: count * 4])
    os.close(file)
    return time.process_time() - start


def write_record(path: Path, data: np.ndarray, counts: list[int]) -> float:
    """Seconds for the same bytes as tensors of calls."""
    address = data.ctypes.data
    start = time.process_time()
    writer = RecordWriter(path, HEADER)
    for number in range(len(counts) // TENSORS_A_CALL):
        first, second = counts[TENSORS_A_CALL * number : TENSORS_A_CALL * (number + 1)]
        writer.write(make_call(writer, number + 1, address, first, second))
    writer.close()
    return time.process_time() - start


def make_call(writer: RecordWriter, number: int, address: int, first: int, second: int) -> Call:
    """An addition with one new input and one output."""
    given = TensorRecord(
        "input/self",
        "float32",
        (first,),
        (1,),
        "cuda:0",
        content=2 * number,
        offset=writer.append_memory(address, 4 * first),
    )
    answer = TensorRecord(
        "output/output_0", "float32", (second,), (1,), "cuda:0", content=2 * number + 1,
        offset=writer.append_memory(address, 4 * second),
    )  # fmt: skip
    return Call(
        number, f"aten::op{number % 40}.Tensor", 1, "forward", "Net", "layer1.0.conv1", "train.py:31", "",
        (("self", TensorRef(0)), ("other", 1), ("alpha", 1)), (given,), (answer,), TensorRef(0),
    )  # fmt: skip


def time_calls(folder: Path) -> None:
    """What one call costs without its bytes, in time of the processor."""
    count, data = 20_000, np.ones(4, "float32")
    writer = RecordWriter(folder / "calls", HEADER)
    start = time.process_time()
    for number in range(1, count + 1):
        writer.write(make_call(writer, number, data.ctypes.data, 4, 4))
    seconds = time.process_time() - start
    writer.close()
    print(f"{'tensors, two of them new':<30} {seconds / count * MICROSECONDS:9.2f}")
    table = StatisticsWriter(folder / "statistics", RecordHeader(Kept.STATISTICS, "", "", ""))
    tensor = TensorRecord("input/self", "float32", (4,), (1,), "cuda:0")
    site = table.site("aten::relu", "forward", "", "", "", "")
    signature = table.signature((), (tensor,), (tensor,), None)
    start = time.process_time()
    for _ in range(10 * count):
        number, _ = table.row()
        table.call(1, site, signature, (1, number))
    seconds = time.process_time() - start
    table.close()
    print(f"{'statistics, one row and a call':<30} {seconds / count / 10 * MICROSECONDS:9.2f}")


def time_opening(folder: Path, count: int) -> None:
    """From the path to the first call, to all calls, and h5py's way to all datasets."""
    path, data = folder / "long.h5", np.ones(4, "float32")
    writer = RecordWriter(path, HEADER)
    for number in range(1, count + 1):
        writer.write(make_call(writer, number, data.ctypes.data, 4, 4))
    cut = folder / "cut.h5"
    cut.write_bytes(path.read_bytes())
    writer.close()
    for name, file in (("opened", path), ("opened, cut off", cut)):
        start = time.perf_counter()
        with open_record(file) as record:
            assert record.calls[count - 1].number == count
            print(f"{name:<30} {time.perf_counter() - start:9.3f}")
    with open_record(path) as record:
        start = time.perf_counter()
        assert sum(len(call.inputs) for call in record.calls) == count
        print(f"{'all calls made':<30} {time.perf_counter() - start:9.3f}")
    start = time.perf_counter()
    with h5py.File(path) as file:
        assert (
            sum(group[number]["input/self"].shape[0] for group in file.values() for number in group)
            == 4 * count
        )
    print(f"{'walked by plain h5py':<30} {time.perf_counter() - start:9.3f}")


if __name__ == "__main__":
    main()
