"""CSV with the columns and formulas of the vendors' `msaccucmp compare` for two HDF5 files, for what reads those.

The formulas are that tool's, also where they say less than they seem to: relative figures are 0 where golden is 0, and a
cosine can't see a wrong scale. Sums are in double precision, so the last digits may differ.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.accuracy.compare.matching import TensorPair, match_tensors
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.file.contents import shaped
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.accuracy.native.library import COMPONENTS, NUMBERS
from torchferry.accuracy.native.standin import components, values_of
from torchferry.report.csv import csv_lines, flat
from torchferry.report.formats import Options

Array = np.ndarray[Any, Any]
ALGORITHMS = (
    "CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError", "RelativeEuclideanDistance",
    "KullbackLeiblerDivergence", "StandardDeviation", "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError",
    "MeanRelativeError",
)  # fmt: skip
COLUMNS = (
    "Index", "NPUDump", "NPUDumpPath", "GroundTruthPath", "DataType", "Shape", *ALGORITHMS, "CompareFailReason"
)  # fmt: skip
NAN = "NaN"
_OF_TRUTHS = ("CosineSimilarity", "RelativeEuclideanDistance")  # all that is said of tensors of truth values


def to_msaccucmp(comparisons: Sequence[RankComparison], options: Options) -> Iterator[str]:
    """The rows; the records are read once more, since these formulas need sums that no other report has."""
    yield from csv_lines([COLUMNS], mark=False)
    for comparison in comparisons:
        if comparison.golden is not None:
            yield from csv_lines(map(flat, _rows(comparison)), mark=False)


def _rows(comparison: RankComparison) -> Iterator[list[str]]:
    is_replay = bool(comparison.mine.replayed)
    with (
        open_record(Path(comparison.mine_path)) as mine,
        open_record(Path(comparison.golden_path)) as golden,
    ):
        ours, theirs = _NumberedCalls(mine), _NumberedCalls(golden)
        for pair in comparison.pairs:
            if pair.mine is None:
                continue
            call = ours.call(pair.mine.number)
            other = theirs.call(pair.golden.number) if pair.golden else None
            yield from _of_pair(mine, golden, call, other, with_inputs=not is_replay)
        last = (ours.numbers[-1] if ours.numbers else 0) + 1
    for pair in comparison.pairs:
        if pair.mine is None and pair.golden is not None:
            path = f"/{pair.golden.group}/{pair.golden.number}"
            reason = f"No data match with {path} in my dump data."
            yield [str(last), NAN, NAN, path, NAN, NAN, *[NAN] * len(ALGORITHMS), reason]


class _NumberedCalls:
    def __init__(self, record: Record) -> None:
        self._record = record
        self.numbers = [call.number for call in record.calls]

    def call(self, number: int) -> Call:
        return self._record.calls[bisect_left(self.numbers, number)]


def _of_pair(
    mine: Record, golden: Record, call: Call, other: Call | None, *, with_inputs: bool
) -> Iterator[list[str]]:
    if other is None:
        reason = f"No data match with op:{call.group} in golden dump data."
        yield [str(call.number), call.group, NAN, NAN, NAN, NAN, *[NAN] * len(ALGORITHMS), reason]
        return
    same = call.operator == other.operator
    tensors = match_tensors(call.inputs, other.inputs, same_operator=same) if with_inputs else []
    tensors += match_tensors(call.outputs, other.outputs, same_operator=same)
    for pair in tensors:
        paths = [
            f"/{each.group}/{each.number}/{tensor.name}"
            for each, tensor in zip((call, other), pair, strict=True)
        ]
        yield [str(call.number), call.group, *paths, *_of_tensors(mine, golden, pair, paths)]


def _of_tensors(mine: Record, golden: Record, pair: TensorPair, paths: Sequence[str]) -> list[str]:
    ours, theirs = pair
    shape = f"[{','.join(map(str, ours.shape))}]"
    dtype = {"bfloat16": "float32"}.get(ours.dtype, ours.dtype)
    if ours.offset is None or theirs.offset is None:
        return [NAN, NAN, *[NAN] * len(ALGORITHMS), "The contents were not recorded."]
    if ours.shape != theirs.shape:
        sizes = f"({math.prod(ours.shape)}) and ({math.prod(theirs.shape)})"
        return [NAN, NAN, *[NAN] * len(ALGORITHMS), f"The sizes do not match: {sizes}."]
    if not math.prod(ours.shape):
        return [dtype, shape, *[NAN] * len(ALGORITHMS), f"The dump data size is 0 in {paths[0]!r}."]
    blocks = Blocks(*_paired(mine.array(ours), golden.array(theirs), ours, theirs), ours.dtype, theirs.dtype)
    figures, reasons = figures_of(blocks, is_scalar=sum(ours.shape) == len(ours.shape), paths=paths)
    if ours.dtype == theirs.dtype == "bool":
        reasons = [
            f"Algorithm {name} does not support Boolean types."
            for name in ALGORITHMS
            if name not in _OF_TRUTHS
        ]
        figures = {name: figures[name] if name in _OF_TRUTHS else NAN for name in ALGORITHMS}
    return [dtype, shape, *(figures[name] for name in ALGORITHMS), ",".join(reasons)]


def _paired(ours: Array, theirs: Array, mine: TensorRecord, golden: TensorRecord) -> tuple[Array, Array]:
    """Flat, with elements of one index at one place; where both lie alike, as they lie."""
    layouts = [(tensor.is_dense and tensor.stride, tensor.elements) for tensor in (mine, golden)]
    if mine.is_dense and layouts[0] == layouts[1]:
        return ours, theirs
    return shaped(ours, mine).reshape(-1), shaped(theirs, golden).reshape(-1)


# The formulas, in two passes over blocks of two tensors.

_EPSILON = 2.0**-52  # below it, a golden value counts as zero
_SINGLE_EPSILON = 2.0**-23  # the least that a normalised value can be
_SMALL = 0.001  # what StandardDeviation shows as 0
_BLOCK = 1 << 18
_NO_COSINE = "Cannot compare by Cosine Similarity. All the data is zero in {path}."


@dataclass(frozen=True)
class Blocks:
    """Two flat arrays as records hold them, elements of one place belonging together."""

    mine: Array
    golden: Array
    mine_dtype: str
    golden_dtype: str

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        for start in range(0, self.mine.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            yield _values(self.mine[part], self.mine_dtype), _values(self.golden[part], self.golden_dtype)


def _values(array: Array, dtype: str) -> Array:
    """The numbers of an array; complex ones count as two."""
    return values_of(components(array, dtype), NUMBERS[COMPONENTS.get(dtype, dtype)])


def figures_of(blocks: Blocks, *, is_scalar: bool, paths: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """All ten figures as texts, and what could not be computed."""
    with np.errstate(all="ignore"):
        sums = _Sums()
        for mine, golden in blocks:
            sums.add(mine, golden)
        divergence = _divergence(blocks, sums)
    cosine, reasons = _cosine(sums, is_scalar, paths)
    has_size = math.sqrt(sums.golden_squares) > _EPSILON
    euclidean = math.sqrt(sums.squares / sums.golden_squares) if has_size else 0.0
    figures = {
        "CosineSimilarity": cosine,
        "MaxAbsoluteError": _shown(sums.max_abs),
        "AccumulatedRelativeError": _shown(sums.relative),
        "RelativeEuclideanDistance": _shown(euclidean),
        "KullbackLeiblerDivergence": _shown(0.0 if abs(divergence) < _EPSILON else divergence),
        "StandardDeviation": _deviations(sums),
        "MeanAbsoluteError": _shown(sums.absolute / sums.count),
        "RootMeanSquareError": _shown(math.sqrt(sums.squares / sums.count)),
        "MaxRelativeError": _shown(sums.max_relative),
        "MeanRelativeError": _shown(sums.relative / sums.count),
    }
    return figures, reasons


class _Sums:
    def __init__(self) -> None:
        self.count = 0
        self.absolute = self.max_abs = self.squares = self.relative = self.max_relative = 0.0
        self.products = self.mine_squares = self.golden_squares = self.mine_sum = self.golden_sum = 0.0
        self.mine_range, self.golden_range = (math.inf, -math.inf), (math.inf, -math.inf)

    def add(self, mine: Array, golden: Array) -> None:
        errors = np.abs(mine - golden)
        relative = np.where(np.abs(golden) > _EPSILON, np.abs(mine / golden - 1), 0)
        self.count += mine.size
        self.absolute += float(errors.sum())
        self.max_abs = float(np.maximum(self.max_abs, errors.max()))  # nan if one is
        self.squares += float((errors**2).sum())
        self.relative += float(relative.sum())
        self.max_relative = float(np.maximum(self.max_relative, relative.max()))
        self.products += float(mine @ golden)
        self.mine_squares += float(mine @ mine)
        self.golden_squares += float(golden @ golden)
        self.mine_sum += float(mine.sum())
        self.golden_sum += float(golden.sum())
        self.mine_range = _range(self.mine_range, mine)
        self.golden_range = _range(self.golden_range, golden)


def _range(known: tuple[float, float], values: Array) -> tuple[float, float]:
    return float(np.minimum(known[0], values.min())), float(np.maximum(known[1], values.max()))


def _cosine(sums: _Sums, is_scalar: bool, paths: Sequence[str]) -> tuple[str, list[str]]:
    if is_scalar:
        return _shown(1.0), ["This tensor is scalar."]
    norms = [math.sqrt(sums.mine_squares), math.sqrt(sums.golden_squares)]
    if norms[0] <= _EPSILON and norms[1] < _EPSILON:
        return "1.0", []
    for norm, path in zip(norms, paths, strict=True):
        if math.sqrt(norm) <= _EPSILON:
            return NAN, [_NO_COSINE.format(path=path)]
    result = sums.products / (norms[0] * norms[1])
    return _shown(min(result, 1.0)), []


def _divergence(blocks: Blocks, sums: _Sums) -> float:
    """Of Kullback and Leibler, of the values taken to [0, 1] and divided by their sum."""
    mine_sum = golden_sum = total = 0.0
    for mine, golden in blocks:
        p, q = _normalised(mine, sums.mine_range), _normalised(golden, sums.golden_range)
        mine_sum += float(p.sum())
        golden_sum += float(q.sum())
        total += float((p * np.log(p / q)).sum())
    return total / mine_sum + math.log(golden_sum / mine_sum) if mine_sum and golden_sum else math.nan


def _normalised(values: Array, limits: tuple[float, float]) -> Array:
    low, high = limits
    normal = (values - low) / (high - low) if high != low else values
    return np.maximum(normal, _SINGLE_EPSILON)


def _deviations(sums: _Sums) -> str:
    shown = []
    for total, squares in ((sums.mine_sum, sums.mine_squares), (sums.golden_sum, sums.golden_squares)):
        mean = total / sums.count
        deviation = math.sqrt(max(squares / sums.count - mean**2, 0.0))
        shown.append(";".join(f"{0.0 if abs(each) < _SMALL else each:.3f}" for each in (mean, deviation)))
    return ",".join(f"({each})" for each in shown)


def _shown(value: float) -> str:
    return f"{value:.6f}"
