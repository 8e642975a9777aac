"""CSV: one row for each tensor of each pair of calls, with every figure; for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from torchferry.accuracy.compare.model import Comparison, Pair
from torchferry.accuracy.judge.model import Difference
from torchferry.accuracy.model import Call, Metrics, Statistics, TensorRecord
from torchferry.accuracy.report import sentences
from torchferry.report.safe import looks_like_formula, one_line, xml_text

Cell = str | int | float | None
_CALL = ("number", "operator", "step", "phase", "model", "module", "place")
_METRICS = tuple(each.name for each in fields(Metrics))
_STATISTICS = tuple(each.name for each in fields(Statistics) if each.name != "checksum")
COLUMNS = (
    "rank", "how", *_CALL, "golden_number", "golden_operator", "verdict", "sort", "own_error", "golden_error", "limit",
    "basis", "side", "name", "golden_name", "dtype", "golden_dtype", "shape", "golden_shape", *_METRICS, "picture", "reason",
    *(f"{name}_of_mine" for name in _STATISTICS), *(f"{name}_of_golden" for name in _STATISTICS),
)  # fmt: skip
BYTE_ORDER_MARK = "\ufeff"  # by which Excel knows UTF-8


def to_csv(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The rows; a call without tensors to compare has one."""
    yield from csv_lines([COLUMNS], mark=True)
    for comparison in comparisons:
        rows = (cells for pair in comparison.pairs for cells in _rows(pair, comparison.mine.rank))
        yield from csv_lines(rows)


def csv_lines(rows: Iterable[Sequence[Cell]], *, mark: bool = False) -> Iterator[str]:
    """Rows as text; no cell is taken for a formula."""
    import csv
    import io

    if mark:
        yield BYTE_ORDER_MARK
    for row in rows:
        output = io.StringIO()
        csv.writer(output).writerow([_cell(cell) for cell in row])
        yield output.getvalue()


def _rows(pair: Pair, rank: int) -> Iterator[list[Cell]]:
    judgement = pair.judgement
    call = pair.mine or pair.golden
    assert call is not None
    start: list[Cell] = [
        rank,
        pair.how,
        *(getattr(pair.mine, name) if pair.mine else "" for name in _CALL[:2]),
        *(getattr(call, name) for name in _CALL[2:]),
        *_golden(pair.golden),
        judgement.verdict.value if sentences.is_judged(pair) else "",
        judgement.sort.value,
        judgement.own_error,
        judgement.golden_error,
        judgement.limit,
        judgement.basis,
    ]
    empty = True
    for side, differences in (("input", pair.inputs), ("output", pair.outputs)):
        for difference in differences:
            empty = False
            yield [*start, side, *_tensors(difference)]
    if empty:
        yield [*start, *[""] * (len(COLUMNS) - len(start))]


def _golden(call: Call | None) -> tuple[Cell, Cell]:
    return (call.number, call.operator) if call else ("", "")


def _tensors(difference: Difference) -> list[Cell]:
    mine, golden, metrics = difference.mine, difference.golden, difference.metrics
    figures = [getattr(metrics, name) for name in _METRICS] if metrics else [""] * len(_METRICS)
    return [
        mine.name, golden.name, mine.dtype, golden.dtype, _shape(mine), _shape(golden), *figures, difference.picture,
        difference.reason, *_statistics(mine), *_statistics(golden),
    ]  # fmt: skip


def _shape(tensor: TensorRecord) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


def _statistics(tensor: TensorRecord) -> list[Cell]:
    if tensor.statistics is None:
        return [""] * len(_STATISTICS)
    return [getattr(tensor.statistics, name) for name in _STATISTICS]


def _cell(value: Cell) -> Cell:
    if not isinstance(value, str):
        return "" if value is None else value
    text = xml_text(one_line(value))
    return "'" + text if looks_like_formula(text) else text
