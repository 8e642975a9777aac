"""What comparing costs: tensors of two records, against copying the same bytes and against numpy, in turns in one run."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from torchferry.accuracy.compare.comparing import ComparingPlan, Figures, compare_files
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord, TensorRef
from torchferry.accuracy.native import differences, standin
from torchferry.accuracy.native.library import NUMBERS, ROW, statistics_into
from torchferry.conversion.planning import cores

ROUNDS = 5
GIGA = 1e9
LARGE = (2048, 1024)  # float32: 8 MB
LARGE_CALLS, SMALL_CALLS, MANY_CALLS = 48, 5000, 200_000
Array = np.ndarray


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--alone", metavar="NAME", choices=("GPT", "ResNet-50"), help="only this: record a step of GPT or ResNet-50 with all "
        "tensors, on a GPU if there is one (15 and 10 GiB), and judge the record alone, as `ferry compare` does it",
    )  # fmt: skip
    parser.add_argument(
        "--judging", action="store_true", help="only this: records whose results differ, or do not"
    )
    parser.add_argument(
        "--jobs", type=int, default=cores(), help="threads of --alone (default: one for each core)"
    )
    parser.add_argument("--folder", help="where records go (default: where temporary files go)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        if args.alone:
            measure_alone(args.alone, Path(folder), args.jobs)
        elif args.judging:
            measure_judging(Path(folder))
        else:
            measure_all()


def measure_all() -> None:
    """Everything but what needs a large machine."""
    print(
        f"{time.strftime('%Y-%m-%d')}, {cores()} cores; processor time, medians of {ROUNDS} rounds in turns"
    )
    with tempfile.TemporaryDirectory() as folder:
        measure_speed(Path(folder))
        measure_small(Path(folder))
        measure_orders(Path(folder))
        measure_memory(Path(folder))
        measure_judging(Path(folder))
    measure_statistics()
    measure_dtypes()


def write(path: Path, calls: int, shape: tuple[int, ...], noise: float, channels_last: bool = False) -> None:
    """A record of calls with an output of this shape: random numbers, and as much noise."""
    writer = RecordWriter(path, RecordHeader(Kept.TENSORS, "train.py", "cpu", ""))
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
    clock: Callable[[], float] = time.process_time, rounds: int = ROUNDS, **works: Callable[[], object]
) -> dict[str, float]:
    """Median seconds of each; of the processors, unless another clock is given."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
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
    wall = in_turns(time.perf_counter, one=lambda: ours(1), all=lambda: ours(cores()))
    for name, threads in (("one", 1), ("all", cores())):
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
    """The largest size of processes that run `ferry compare` on a record of many calls, and on one of large tensors."""
    base, _ = run_compare([])
    print(
        f"\n{'largest size of ferry compare':<38} {'files MB':>8} {'peak MB':>8} {'seconds':>8} {'GB/s':>6}"
    )
    print(f"{'with PyTorch imported, nothing done':<38} {'':>8} {base / 1e6:8.0f}")
    write_many(folder / "many.h5", MANY_CALLS)
    with open_record(folder / "many.h5") as golden:
        write_rounded(folder / "many_mine.h5", golden, moved=False)
    write_large(folder / "judged_golden.h5")
    for name, moved in (("judged", False), ("judged_moved", True)):
        with open_record(folder / "judged_golden.h5") as golden:
            write_rounded(folder / f"{name}_mine.h5", golden, moved=moved)
    for label, mine, golden_name in (
        (f"{MANY_CALLS:,} calls, with itself", "many.h5", "many.h5"),
        (f"{MANY_CALLS:,} calls, all rounded otherwise", "many_mine.h5", "many.h5"),
        ("large tensors, equal inputs", "judged_mine.h5", "judged_golden.h5"),
        ("large tensors, all inputs differ", "judged_moved_mine.h5", "judged_golden.h5"),
    ):
        files = [folder / mine, folder / golden_name]
        peak, seconds = run_compare(files)
        size = sum(file.stat().st_size for file in files)
        speed = size / seconds / GIGA
        print(f"{label:<38} {size / 1e6:8.0f} {peak / 1e6:8.0f} {seconds:8.1f} {speed:6.2f}")


def run_compare(files: list[Path]) -> tuple[int, float]:
    """Bytes at most, and seconds, of a process of its own, on one core."""
    program = (
        "import sys, torch, time; from torchferry.cli.main import main; torch.set_num_threads(1); start = time.time()\n"
        "code = main(['compare', *sys.argv[1:], '--jobs', '1', '--quiet']) if sys.argv[1:] else 0\n"
        "assert code == 0, code\n"
        "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(int(peak) * 1024, time.time() - start)"
    )
    command = [sys.executable, "-c", program, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, seconds = done.stdout.splitlines()[-1].split()
    return int(peak), float(seconds)


def write_many(path: Path, calls: int) -> None:
    """As a long training of a small network gives them."""
    writer = RecordWriter(path, RecordHeader(Kept.TENSORS, "train.py", "cpu", ""))
    random = np.random.default_rng(0)

    numbers = itertools.count(1)

    def kept(name: str, values: Array) -> TensorRecord:
        offset = writer.append(values.tobytes())
        stride = tuple(int(np.prod(values.shape[at + 1 :])) for at in range(values.ndim))
        return TensorRecord(
            name, "float32", values.shape, stride, "cpu", content=next(numbers), offset=offset
        )

    for number in range(1, calls + 1):
        step, layer = divmod(number - 1, 200)
        one, other = (random.standard_normal((8, 8), np.float32) for _ in range(2))
        is_product = layer % 2 == 0
        result = (one.astype(np.float64) @ other).astype(np.float32) if is_product else one * other
        names = ("self", "mat2" if is_product else "other")
        inputs = tuple(
            kept(f"input/{name}", values) for name, values in zip(names, (one, other), strict=True)
        )
        writer.write(
            Call(
                number,
                "aten::mm" if is_product else "aten::mul.Tensor",
                step + 1,
                "forward",
                "Net",
                f"layers.{layer}",
                f"net.py:{layer}",
                arguments=tuple((name, TensorRef(at)) for at, name in enumerate(names)),
                inputs=inputs,
                outputs=(kept("output/output_0", result),),
                results=TensorRef(0),
            )
        )
    writer.close()


def write_large(path: Path) -> None:
    """Calls of each class, forward and backward, with results of up to 17 million elements."""
    import torch
    from torch.nn import functional

    from torchferry.accuracy.record.recorder import Recorder

    torch.manual_seed(0)
    random = torch.randn
    rows, image = (random(8192, 1024), random(16, 64, 56, 56))
    weight, kernel, scale = random(1024, 2048), random(64, 64, 3, 3) / 24, random(1024)
    recorder = Recorder(path, RecordHeader(Kept.TENSORS, "large.py", "cpu", torch.__version__))
    recorder.start()
    try:
        with torch.no_grad():
            rows @ weight
            functional.conv2d(image, kernel, padding=1)
            functional.layer_norm(rows, (1024,), scale, scale)
            torch.softmax(rows, -1)
            torch.log_softmax(rows, -1)
            functional.batch_norm(image, None, None, scale[:64], scale[:64], training=True)
            functional.gelu(rows)
            rows + scale
            rows.sum(0)
            torch.ops.aten.convolution_backward(
                image, image, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]
            )
            torch.ops.aten._softmax_backward_data(rows, rows.softmax(-1), -1, torch.float32)
            attended = rows.view(8, 1024, 16, 64).transpose(1, 2)
            functional.scaled_dot_product_attention(attended, attended, attended)
    finally:
        recorder.stop()


def write_rounded(path: Path, golden: Record, moved: bool) -> None:
    """The same calls with results that were computed in double precision; from inputs that differ a little, if so."""
    import torch

    from torchferry.accuracy.judge.execution import doubled_inputs, execute_doubled, read_inputs

    writer = RecordWriter(path, golden.header)

    numbers = itertools.count(1)

    def kept(record: TensorRecord, values: torch.Tensor) -> TensorRecord:
        lying = values.to(getattr(torch, record.dtype)).contiguous()
        offset = writer.append(lying.numpy().tobytes())
        return replace(record, stride=lying.stride(), offset=offset, content=next(numbers), is_dense=True)

    for call in golden.calls:
        if not all(record.offset is not None for record in (*call.inputs, *call.outputs)):
            continue
        given = read_inputs(golden, call)
        if moved:
            given = [each * (1 + 1e-4) if each.is_floating_point() else each for each in given]
        results = execute_doubled(call, doubled_inputs(given))
        writer.write(
            replace(
                call,
                inputs=tuple(kept(*each) for each in zip(call.inputs, given, strict=True)),
                outputs=tuple(kept(*each) for each in zip(call.outputs, results, strict=True)),
            )
        )
    writer.close()


def measure_judging(folder: Path) -> None:
    """Records of programs whose results all differ, as on another device; the same ones; and one alone. Processor time of
    one thread, for the bytes of the files; beside it what it takes to hold everything against double precision."""
    print(
        f"\n{'judged by one thread, GB/s of the files':<38} {'GB':>6} {'quick':>8} {'thorough':>9} {'ratio':>7}"
    )
    for name in ("CNN", "GPT", "GPT bf16"):
        golden, mine = folder / f"{name} golden.h5", folder / f"{name} mine.h5"
        record_training(name, golden, is_exact=False)
        record_training(name, mine, is_exact=True)
        for label, files in (
            ("all results differ", [mine, golden]),
            ("equal in every bit", [golden, golden]),
            ("alone", [mine]),
        ):
            print_judging(f"{name}, {label}", files)
        golden.unlink()
        mine.unlink()


def print_judging(label: str, files: list[Path]) -> None:
    """Both ways, in turns."""
    nbytes = sum(file.stat().st_size for file in files)
    golden = files[1] if len(files) > 1 else None

    def compare(is_thorough: bool) -> None:
        compare_files(files[0], golden, ComparingPlan(1, is_thorough=is_thorough))

    compare(is_thorough=False)  # what is loaded once
    found = in_turns(rounds=3, quick=lambda: compare(False), thorough=lambda: compare(True))
    speeds = [nbytes / found[name] / GIGA for name in ("quick", "thorough")]
    print(
        f"{label:<38} {nbytes / GIGA:6.2f} {speeds[0]:8.2f} {speeds[1]:9.2f} {speeds[0] / speeds[1]:7.1f}",
        flush=True,
    )


def record_training(name: str, path: Path, *, is_exact: bool) -> None:
    """A step of a small network; exactly: with all results computed in double precision and rounded once."""
    import torch
    from accuracy_gpu import Gpt, resnet50
    from torch.nn import functional

    from torchferry.accuracy.record.recorder import Recorder

    torch.manual_seed(0)
    model = resnet50() if name == "CNN" else Gpt(words=8192, length=256, width=384, layers=3)
    given = torch.randn(2, 3, 128, 128) if name == "CNN" else torch.randint(8192, (4, 256))
    targets = torch.randint(1000, (2,)) if name == "CNN" else given.flatten()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    recorder = Recorder(path, RecordHeader(Kept.TENSORS, "training.py", "cpu", torch.__version__))
    with exact_kernels() if is_exact else contextlib.nullcontext():
        recorder.start()
        with torch.autocast("cpu", torch.bfloat16, enabled=name.endswith("bf16")):
            loss = functional.cross_entropy(model(given).float(), targets)
        loss.backward()
        optimizer.step()
        recorder.stop()


def exact_kernels() -> contextlib.AbstractContextManager[object]:
    """As another device: every operator that answers with fractions has them from double precision."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map_only

    class Exact(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = func(*args, **(kwargs or {}))
            schema = func._schema
            given = [*schema.arguments, *schema.returns]
            if any(each.alias_info is not None for each in given) or kwargs or "empty" in schema.name:
                return result
            doubled = tree_map_only(
                torch.Tensor, lambda each: each.double() if each.is_floating_point() else each, args
            )
            try:
                exact = tree_leaves(func(*doubled))
            except (RuntimeError, TypeError):  # of two dtypes, or not of double precision
                return result
            for one, other in zip(tree_leaves(result), exact, strict=True):
                if isinstance(one, torch.Tensor) and one.is_floating_point() and one.shape == other.shape:
                    one.copy_(other)
            return result

    return Exact()


def measure_alone(name: str, folder: Path, jobs: int) -> None:
    """A record of a real size, judged against what its own inputs give."""
    import torch
    from accuracy_gpu import program

    from torchferry.accuracy.record.recorder import Recorder

    device = "cuda" if torch.cuda.is_available() else "cpu"
    path = folder / f"{name}.h5"
    step = program(name, device)
    step()
    recorder = Recorder(path, RecordHeader(Kept.TENSORS, "training.py", device, torch.__version__))
    recorder.start()
    step()
    recorder.stop()
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {device}: {name}, {path.stat().st_size / 2**30:.1f} GiB",
        flush=True,
    )
    command = ["-m", "torchferry", "compare", str(path), "--jobs", str(jobs)]
    for options in ([], ["--thorough"]):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *command, *options], capture_output=True, text=True, check=False
        )
        taken = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"ferry compare {name}.h5 -j{jobs} {' '.join(options)}: {taken:.1f} s by the clock; so far {used.ru_utime:.0f} s of "
            f"processors, {used.ru_maxrss / 1024:.0f} MB at most; exit {done.returncode}\n{done.stdout[:3000]}{done.stderr[-500:]}",
            flush=True,
        )


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
            return measured(mine, golden, dtype)

        def none(golden: Array = golden, dtype: str = dtype) -> object:
            return measured(golden, golden.copy(), dtype)

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


def measured(mine: Array, golden: Array, dtype: str) -> object:
    """The sums over all pairs of elements."""
    both = differences.pieces(mine, golden, dtype, dtype)
    return differences.Measuring(dtype, dtype).sums(both)


def arrays() -> Iterator[tuple[str, Array, Array]]:
    """Two megabytes and more of each dtype, as records give them."""
    golden = np.random.default_rng(0).standard_normal(1 << 21) * 100
    mine = golden * (1 + 1e-2)
    for dtype in ("float64", "float32", "float16", "int64", "int32", "uint8"):
        yield dtype, mine.astype(dtype), golden.astype(dtype)
    bits = [each.astype(np.float32).view(np.uint32) >> 16 for each in (mine, golden)]
    yield "bfloat16", bits[0].astype(np.uint16), bits[1].astype(np.uint16)


if __name__ == "__main__":
    main()
