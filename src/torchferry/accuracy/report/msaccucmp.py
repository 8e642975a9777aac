"""CSV with the columns and formulas of the vendors' `msaccucmp compare` for two HDF5 files, for what reads those.

The formulas are that tool's, also where they say less than they seem to: relative figures are 0 where golden is 0, and a
cosine can't see a wrong scale. Sums are in double precision, so the last digits may differ.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.accuracy.compare.matching import TensorPair, match_tensors
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.judge.model import CallPair
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.report.csv import csv_lines, flat
from torchferry.report.formats import Options

if TYPE_CHECKING:
    import numpy as np

    from torchferry.accuracy.file.reader import Record

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
    from torchferry.accuracy.file.reader import open_record

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
    yield from (_golden_alone(pair, last) for pair in comparison.pairs if pair.mine is None)


class _NumberedCalls:
    """The calls of a record by their numbers."""

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
    from torchferry.accuracy.report.msaccucmp_formulas import Blocks, figures_of

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
    from torchferry.accuracy.file.contents import shaped

    layouts = [(tensor.is_dense and tensor.stride, tensor.elements) for tensor in (mine, golden)]
    if mine.is_dense and layouts[0] == layouts[1]:
        return ours, theirs
    return shaped(ours, mine).reshape(-1), shaped(theirs, golden).reshape(-1)


def _golden_alone(pair: CallPair, index: int) -> list[str]:
    call = pair.golden
    assert call is not None
    path = f"/{call.group}/{call.number}"
    reason = f"No data match with {path} in my dump data."
    return [str(index), NAN, NAN, path, NAN, NAN, *[NAN] * len(ALGORITHMS), reason]
