"""How near operators come to what is possible: on a device that is known, or else beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchferry.perf.roofline.work import KernelWork
from torchferry.units import ITEM_SIZES
from torchferry.vendors.schema import toml_module

if TYPE_CHECKING:
    from torchferry.perf.tables.kernels import KernelSignature

# What devices can do at most, by their names.

FILE = Path(__file__).with_name("devices.toml")
_OTHER_KEYS = ("pattern", "source", "bandwidth")


@dataclass(frozen=True)
class Peaks:
    """Of one device."""

    pattern: str
    flops: Mapping[str, float]  # a second, by dtype
    bandwidth: float  # bytes a second
    source: str

    def least_seconds(self, work: KernelWork) -> float | None:
        """In which it can do some work; None: what it can do with this dtype is not known."""
        by_memory = work.nbytes / self.bandwidth
        if not work.flops:
            return by_memory
        flops = self.flops.get(work.dtype)
        return max(work.flops / flops, by_memory) if flops else None


@cache
def peaks_of(device_name: str) -> Peaks | None:
    """None: nothing is known of such a device."""
    return next((peaks for peaks in all_peaks() if re.search(peaks.pattern, device_name)), None)


@cache
def all_peaks() -> tuple[Peaks, ...]:
    """In the order of the file."""
    with FILE.open("rb") as stream:
        rows = toml_module().load(stream)["device"]
    return tuple(
        Peaks(
            row["pattern"],
            {dtype: tera * 1e12 for dtype, tera in row.items() if dtype not in _OTHER_KEYS},
            row["bandwidth"] * 1e9,
            row["source"],
        )
        for row in rows
    )


LEAST_CALL = 5e-6  # seconds: what the start of a kernel and its first and last blocks cost, whatever it does
_ALIKE_WORK = 8  # calls are alike whose work is at most so many times another's
_ALIKE_INTENSITY = 4  # and whose operations for each byte are at most so many times another's


class Measured(NamedTuple):
    """Calls of one operator with one signature."""

    operator: str
    work: KernelWork
    seconds: float  # of one call


def least_seconds(work: KernelWork, peaks: Peaks) -> float | None:
    """Of one call; None: not known."""
    found = peaks.least_seconds(work)
    return None if found is None else max(found, LEAST_CALL)


def reached(work: KernelWork | None, seconds: float, peaks: Peaks | None) -> float | None:
    """The least possible time of a call over the time that it took, up to 1; None: not known."""
    least = least_seconds(work, peaks) if work is not None and peaks is not None else None
    return min(least / seconds, 1.0) if least is not None and seconds > 0 else None


def best_of_alike(mine: Measured, others: Iterable[Measured]) -> float:
    """What this call would take at the speed of the fastest calls of the same operator that do as much in the same way.

    On a device of which nothing is known this is all that there is to compare with."""
    amount = _amount(mine.work)
    speeds = [
        _amount(other.work) / other.seconds
        for other in others
        if other.operator == mine.operator and other.seconds and _is_alike(mine.work, other.work)
    ]
    fastest = max(speeds, default=0.0)
    return min(max(amount / fastest, LEAST_CALL), mine.seconds) if fastest else mine.seconds


def _amount(work: KernelWork) -> float:
    return work.flops or work.nbytes


def _is_alike(one: KernelWork, other: KernelWork) -> bool:
    if one.kind != other.kind or one.dtype != other.dtype:
        return False
    if not _is_near(_amount(one), _amount(other), _ALIKE_WORK):
        return False
    return not one.flops or _is_near(one.flops / one.nbytes, other.flops / other.nbytes, _ALIKE_INTENSITY)


def _is_near(one: float, other: float, times: float) -> bool:
    return one <= other * times and other <= one * times


# How much a kernel of a table has to compute and to move, by its type and its tensors.

_MATMUL = re.compile(r"(?:Batch)?Mat_?Mul", re.IGNORECASE)
_STREAMS = re.compile(
    r"(?:Add|Sub|Mul|Muls|Adds|Axpy|Div|RealDiv|Relu|ReluGrad|Gelu|GeluGrad|Sigmoid|Tanh|Swish|Cast|TransData|Transpose|"
    r"TransposeD|ViewCopy|TensorMove|ReduceSum|ReduceMean|Softmax|SoftmaxV2|SoftmaxGrad|ZerosLike|Fill|Square|Sqrt|Exp|"
    r"Log|Neg|Pow|Maximum|Minimum|Addcmul|Addcdiv|LayerNorm\w*|BatchNorm\w*|BNTraining\w*|Select|SelectV2)"
)
_DTYPES = {
    "DT_BF16": "bfloat16",
    "FLOAT": "float32",
    "DOUBLE": "float64",
}


def kernel_work(type_: str, called: KernelSignature) -> KernelWork | None:
    """None: it is not known."""
    inputs = _tensors(called.input_shapes, called.input_dtypes)
    outputs = _tensors(called.output_shapes, called.output_dtypes)
    if not inputs or not outputs:
        return None
    moved = float(sum(prod(shape) * ITEM_SIZES[dtype] for shape, dtype in (*inputs, *outputs)))
    dtype = inputs[0][1]
    if _MATMUL.match(type_):
        return _product(inputs, outputs, moved, dtype)
    return KernelWork("memory", 0.0, moved, dtype) if _STREAMS.fullmatch(type_) else None


def _product(
    inputs: list[tuple[list[int], str]], outputs: list[tuple[list[int], str]], moved: float, dtype: str
) -> KernelWork | None:
    """Whether an argument is transposed is not told: what both have in common follows from the sizes."""
    if len(inputs) < 2 or len(outputs[0][0]) < 2:
        return None
    left, right, result = prod(inputs[0][0]), prod(inputs[1][0]), outputs[0][0]
    rows, columns, batches = result[-2], result[-1], prod(result[:-2])
    inner = left // max(batches * rows, 1)
    if left != batches * rows * inner or right not in (batches * inner * columns, inner * columns):
        return None
    return KernelWork("matmul", 2.0 * batches * rows * inner * columns, moved, dtype)


def _tensors(shapes: str, dtypes: str) -> list[tuple[list[int], str]]:
    """Empty if any of them is not known."""
    found = []
    for shape, name in zip(shapes.split(";"), dtypes.split(";"), strict=False):
        sizes = [size.strip() for size in shape.strip().strip('"').split(",") if size.strip()]
        known = _DTYPES.get(name.strip(), name.strip().removeprefix("DT_").lower())
        if known not in ITEM_SIZES or not all(size.isdecimal() for size in sizes):
            return []
        found.append(([int(size) for size in sizes], known))
    return found
