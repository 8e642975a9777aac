"""Tables with the columns of msprobe's own `compare`, for what reads those: a row for each tensor and each argument.

The figures are ours, to the same definitions; a result is judged as everywhere here, and not by that tool's thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.file.api_dump_writer import ApiValue, described_call, named_values
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.judge.model import CallPair, PairDifference, Verdict
from torchferry.accuracy.model import OUTPUT, Call, Kept, Metrics
from torchferry.errors import ReportError
from torchferry.report.csv import Cell, csv_lines, flat
from torchferry.report.formats import Options
from torchferry.report.safe import one_line
from torchferry.text import Text

NA, UNSUPPORTED = "N/A", "unsupported"
_STATISTICS = ("max", "min", "mean", "l2norm")
_FIGURES = ("Max", "Min", "Mean", "Norm")
_START = (
    "NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape", "NPU Requires_grad",
    "Bench Requires_grad",
)  # fmt: skip
_OF_TENSORS = (
    "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio",
)  # fmt: skip
_OF_STATISTICS = (
    "Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
    "NormRelativeErr",
)  # fmt: skip
_OF_CHECKSUMS = ("NPU MD5", "BENCH MD5")
_BOTH_SIDES = tuple(f"{side} {name}" for side in ("NPU", "Bench") for name in _STATISTICS)
_ERRORS = (Verdict.FAULT, Verdict.PROGRAM)
_WARNINGS = (Verdict.SUSPICIOUS, Verdict.UNEXPLAINED, Verdict.REDUCED)
_SCALARS = "the values of this argument differ"
_LONELY = "no counterpart on the other side"


def to_msprobe(comparisons: Sequence[RankComparison], options: Options) -> Iterator[str]:
    """CSV of all ranks, with the columns of the newest versions."""
    tables = [table_of(comparison) for comparison in comparisons]
    for at, table in enumerate(tables):
        if at == 0 or table.columns != tables[at - 1].columns:
            yield from csv_lines([table.columns], mark=False)
        yield from csv_lines(map(flat, table.rows), mark=False)


@dataclass(frozen=True)
class ResultTable:
    """One rank's."""

    columns: tuple[str, ...]
    rows: Iterator[Sequence[Cell]]


def table_of(comparison: RankComparison, *, is_old: bool = False) -> ResultTable:
    """The table of a rank; `is_old`: as versions before 26 name and fill the column of the result."""
    if comparison.golden is None or not (comparison.mine.apis and comparison.golden.apis):
        raise ReportError(
            Text(
                "msprobe's columns compare two msprobe dumps; `ferry record convert RECORD --msprobe DIR` makes "
                "one from a recording",
                "msprobe 格式的列用于比较两份 msprobe dump；`ferry record convert RECORD --msprobe DIR` "
                "可由记录生成 dump",
            )
        )
    rows = _Rows(comparison, is_old)
    return ResultTable(rows.columns, rows.all())


class _Rows:
    def __init__(self, comparison: RankComparison, is_old: bool) -> None:
        self._comparison, self._is_old = comparison, is_old
        self._has_tensors = comparison.mine.kept is Kept.TENSORS
        self._has_checksums = not self._has_tensors and _have_checksums(comparison)

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings."""
        result = "Accuracy Reached or Not" if self._is_old and self._has_tensors else "Result"
        end = ("Requires_grad Consistent", result, "Err_message", "NPU_Stack_Info")
        if self._has_checksums:
            return (*_START, *_OF_CHECKSUMS, *end)
        if self._has_tensors:
            return (*_START, *_OF_TENSORS, *_BOTH_SIDES, *end, "Data_name")
        return (*_START, *_OF_STATISTICS, *_BOTH_SIDES, *end)

    def all(self) -> Iterator[list[Cell]]:
        """The rows, of one call after the other."""
        with (
            open_record(Path(self._comparison.mine_path)) as mine,
            open_record(Path(self._comparison.golden_path)) as golden,
        ):
            for pair in self._comparison.pairs:
                yield from self._of_pair(mine, golden, pair)

    def _of_pair(self, mine: Record, golden: Record, pair: CallPair) -> Iterator[list[Cell]]:
        ours, theirs = _values(mine, pair.mine), _values(golden, pair.golden)
        differences = {each.mine.name: each for each in (*pair.inputs, *pair.outputs)}
        stack = mine.stack(pair.mine) if pair.mine is not None else []
        names = dict.fromkeys((*ours, *theirs))
        for at, name in enumerate(names):
            row = _TableRow(pair, name, ours.get(name), theirs.get(name), differences)
            yield self._cells(row, str(stack) if stack and at == 0 else NA)

    def _cells(self, row: _TableRow, stack: str) -> list[Cell]:
        start = [*row.names, *row.both("dtype"), *row.both("shape"), *row.both("requires_grad")]
        if self._has_checksums:
            middle: list[Cell] = [*row.both("md5")]
        elif self._has_tensors:
            middle = [*row.figures(), *row.statistics()]
        else:
            middle = [*row.differences(), *row.statistics()]
        end: list[Cell] = [row.is_consistent, self._result(row), row.message, stack]
        if self._has_tensors:
            end.append(str([each if isinstance(each, str) else "-1" for each in row.both("data_name", "-1")]))
        return [*start, *middle, *end]

    def _result(self, row: _TableRow) -> str:
        if not self._is_old:
            return row.result
        if self._has_tensors:
            return {"pass": "Yes", "warning": "Yes"}.get(row.result, "No") if row.metrics else "None"
        return {"pass": "", "warning": "Warning"}.get(row.result, "Error")


class _TableRow:
    """One tensor or argument of a call, on both sides."""

    def __init__(
        self,
        pair: CallPair,
        name: str,
        mine: ApiValue | None,
        golden: ApiValue | None,
        differences: dict[str, PairDifference],
    ) -> None:
        self._pair, self._mine, self._golden = pair, mine, golden
        difference = differences.get(mine.tensor) if mine is not None else None
        self.metrics: Metrics | None = difference.metrics if difference is not None else None
        self.names = [
            f"{one_line(call.node)}.{name}" if call is not None and value is not None else NA
            for call, value in ((pair.mine, mine), (pair.golden, golden))
        ]

    def both(self, field: str, missing: str = NA) -> list[Cell]:
        """A field of mine and of golden."""
        return [_shown(value, field, missing) for value in (self._mine, self._golden)]

    def figures(self) -> list[Cell]:
        """The figures of two tensors."""
        metrics = self.metrics
        if metrics is None:
            return [UNSUPPORTED] * len(_OF_TENSORS)
        distance = metrics.rms_error * math.sqrt(metrics.count)
        ratios = metrics.within_thousandth, metrics.within_five_thousandths
        return [metrics.cosine, distance, metrics.max_abs, metrics.max_rel, *ratios]

    def statistics(self) -> list[Cell]:
        """Those of mine, then those of golden."""
        return [_cell(each) for value in (self._mine, self._golden) for each in _figures(value)]

    def differences(self) -> list[Cell]:
        """Of the statistics: absolute, then relative."""
        pairs = list(zip(_figures(self._mine), _figures(self._golden), strict=True))
        absolute = [one - other if one is not None and other is not None else None for one, other in pairs]
        relative = [
            None if apart is None else 0.0 if not apart else abs(apart / other) * 100 if other else math.nan
            for apart, (_, other) in zip(absolute, pairs, strict=True)
        ]
        shown = [f"{each}%" if each else _cell(each) for each in relative]
        return [*map(_cell, absolute), *shown]

    @property
    def is_consistent(self) -> str:
        one, other = self.both("requires_grad")
        return str(one == other)

    @property
    def _differs(self) -> bool:
        """Whether it is an argument that is no tensor, with another value."""
        if self._mine is None or self._golden is None:
            return False
        return "value" in self._mine.described and self._mine.described != self._golden.described

    @property
    def _is_output(self) -> bool:
        return self._mine is not None and self._mine.tensor.startswith(f"{OUTPUT}/")

    @property
    def result(self) -> str:
        """pass, warning or error."""
        verdict = self._pair.judgement.verdict
        if self._differs or (self._is_output and verdict in _ERRORS):
            return "error"
        is_doubtful = self._mine is None or self._golden is None or (self._is_output and verdict in _WARNINGS)
        return "warning" if is_doubtful else "pass"

    @property
    def message(self) -> str:
        """Why it is no pass."""
        why = self._pair.judgement.why
        if self._differs:
            return _SCALARS
        if self._mine is None or self._golden is None:
            return _LONELY
        return one_line(why.en) if why is not None and self.result != "pass" else ""


def _values(record: Record, call: Call | None) -> dict[str, ApiValue]:
    if call is None:
        return {}
    return named_values(described_call(record, record.calls[call.number - 1]))


def _have_checksums(comparison: RankComparison) -> bool:
    with (
        open_record(Path(comparison.mine_path)) as mine,
        open_record(Path(comparison.golden_path)) as golden,
    ):
        return all(_has_checksum(record) for record in (mine, golden))


def _has_checksum(record: Record) -> bool:
    values = (value for call in record.calls[:20] for value in _values(record, call).values())
    return any(value.described.get("md5") for value in values)


def _shown(value: ApiValue | None, field: str, missing: str) -> Cell:
    described = value.described if value is not None else {}
    if field == "dtype" and "value" in described:
        return f"<class '{described['type']}'>"
    if field == "shape":
        return (
            str(list(described["shape"]))
            if "shape" in described
            else "[]"
            if "value" in described
            else missing
        )
    found = described.get(field)
    return missing if found is None else str(found)


def _figures(value: ApiValue | None) -> list[float | None]:
    described: dict[str, Any] = value.described if value is not None else {}
    if "value" in described:
        number = described["value"]
        return [number if isinstance(number, (int, float)) else None] * len(_FIGURES)
    found = [described.get(name) for name in _FIGURES]
    return [float(each) if isinstance(each, (bool, int, float)) else None for each in found]


def _cell(value: float | None) -> Cell:
    if value is None:
        return NA
    return value if math.isfinite(value) else str(value)
