"""A comparison for spreadsheets and scripts: CSV with every figure of every tensor, and a workbook with the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.judge.model import CallPair, PairDifference
from torchferry.accuracy.model import Call, Metrics, Statistics, TensorRecord
from torchferry.accuracy.report import sentences, words
from torchferry.report.csv import Cell, csv_lines, flat
from torchferry.report.formats import Options
from torchferry.report.safe import one_line
from torchferry.report.xlsx import Row, Sheet, workbook
from torchferry.text import Text

_CALL = ("number", "operator", "step", "phase", "model", "module", "place")
_METRICS = tuple(each.name for each in fields(Metrics))
_STATISTICS = tuple(each.name for each in fields(Statistics) if each.name != "checksum")
COLUMNS = (
    "rank", "how", *_CALL, "golden_number", "golden_operator", "verdict", "sort", "own_error", "golden_error", "limit",
    "basis", "side", "name", "golden_name", "dtype", "golden_dtype", "shape", "golden_shape", *_METRICS, "picture", "reason",
    *(f"{name}_of_mine" for name in _STATISTICS), *(f"{name}_of_golden" for name in _STATISTICS),
)  # fmt: skip
_CALL_COLUMNS = (
    (words.RANK_COLUMN, 8), (words.NUMBER, 10), (words.OPERATOR, 44), (words.VERDICT_COLUMN, 18), (words.SORT_COLUMN, 40),
    (words.OWN_ERROR, 14), (words.GOLDEN_ERROR, 14), (words.LIMIT, 14), (words.STEP, 8), (words.PHASE_COLUMN, 12),
    (words.MODEL, 18), (words.MODULE, 34), (words.PLACE, 30), (words.HOW_COLUMN, 18), (words.GOLDEN_NUMBER, 12),
    (words.GOLDEN_OPERATOR, 44), (words.WHY, 80),
)  # fmt: skip
_TENSOR_COLUMNS = (
    (words.RANK_COLUMN, 8), (words.NUMBER, 10), (words.OPERATOR, 44), (words.VERDICT_COLUMN, 18), (words.SIDE, 10),
    (words.TENSOR, 26), (words.DTYPE, 12), (words.SHAPE, 22), *((Text(name, name), 16) for name in _METRICS),
    (words.PICTURE_COLUMN, 36),
)  # fmt: skip


def to_csv(comparisons: Sequence[RankComparison], options: Options) -> Iterator[str]:
    """One row for each tensor of each pair of calls; a call without tensors to compare has one."""
    rows = (
        flat(cells)
        for comparison in comparisons
        for pair in comparison.pairs
        for cells in _rows(pair, comparison.mine.rank)
    )
    yield from csv_lines([COLUMNS])
    yield from csv_lines(rows, mark=False)


def _rows(pair: CallPair, rank: int) -> Iterator[list[Cell]]:
    judgement = pair.judgement
    call = sentences.call_of(pair)
    start: list[Cell] = [
        rank,
        pair.how,
        *(getattr(pair.mine, name) if pair.mine else "" for name in _CALL[:2]),
        *(getattr(call, name) for name in _CALL[2:]),
        *_golden(pair.golden),
        judgement.verdict.value if sentences.is_judged(pair) else "",
        judgement.sort.value,
        *judgement.errors,
        judgement.basis,
    ]
    for side, differences in (("input", pair.inputs), ("output", pair.outputs)):
        for difference in differences:
            yield [*start, side, *_tensors(difference)]
    if not pair.inputs and not pair.outputs:
        yield [*start, *[""] * (len(COLUMNS) - len(start))]


def _golden(call: Call | None) -> tuple[Cell, Cell]:
    return (call.number, call.operator) if call else ("", "")


def _tensors(difference: PairDifference) -> list[Cell]:
    mine, golden, metrics = difference.mine, difference.golden, difference.metrics
    figures = [getattr(metrics, name, "") for name in _METRICS]
    shapes = [_shape(tensor) or "scalar" for tensor in (mine, golden)]
    return [
        mine.name, golden.name, mine.dtype, golden.dtype, *shapes, *figures, difference.picture,
        difference.reason, *_statistics(mine), *_statistics(golden),
    ]  # fmt: skip


def _shape(tensor: TensorRecord) -> str:
    return "x".join(map(str, tensor.shape))


def _statistics(tensor: TensorRecord) -> list[Cell]:
    return [getattr(tensor.statistics, name, "") for name in _STATISTICS]


def to_xlsx(comparisons: Sequence[RankComparison], options: Options) -> bytes:
    """Three sheets: what it comes to, the calls, the tensors."""
    sheets = (
        (words.SUMMARY, [(words.FACT, 34), (words.VALUE, 120)], _summary),
        (words.CALLS, _CALL_COLUMNS, _calls),
        (words.DIFFERENCES, _TENSOR_COLUMNS, _tensor_rows),
    )
    return workbook(
        [
            Sheet(
                options.say(name),
                [(options.say(text), width) for text, width in columns],
                rows(comparisons, options),
            )
            for name, columns, rows in sheets
        ]
    )


def _summary(comparisons: Sequence[RankComparison], options: Options) -> Iterator[Row]:
    say = options.say
    for comparison in comparisons:
        facts: list[Row] = [
            [say(words.RANK_COLUMN), comparison.mine.rank],
            [say(words.VERDICT_COLUMN), say(sentences.headline(comparison))],
            *([say(name), say(text)] for name, text in sentences.details(comparison)),
            *([say(what), "\n".join(commands)] for what, commands in sentences.next_commands(comparison)),
            *([say(words.SUMMARY), say(text)] for text in sentences.network(comparison)),
            [f"{say(words.FILE)} ({say(words.MINE)})", comparison.mine_path],
            [f"{say(words.FILE)} ({say(words.GOLDEN)})", comparison.golden_path],
            *([say(words.NOTE), say(note)] for note in comparison.notes),
        ]
        yield from facts
        for verdict, count in sentences.verdict_counts(comparison).items():
            yield [f"{say(words.COUNT)}: {say(words.VERDICT[verdict].name)}", count]


def _calls(comparisons: Sequence[RankComparison], options: Options) -> Iterator[Row]:
    say = options.say
    for comparison in comparisons:
        for pair in comparison.pairs:
            call, judgement = sentences.call_of(pair), pair.judgement
            yield [
                comparison.mine.rank,
                pair.mine.number if pair.mine else "",
                pair.mine.operator if pair.mine else "",
                say(words.VERDICT[judgement.verdict].name) if sentences.is_judged(pair) else "",
                say(words.SORT[judgement.sort]),
                *judgement.errors,
                call.step,
                say(words.phase(call.phase)),
                call.model,
                call.module,
                call.place,
                say(words.HOW[pair.how]),
                *_golden(pair.golden),
                say(judgement.why) if judgement.why else "",
            ]


def _tensor_rows(comparisons: Sequence[RankComparison], options: Options) -> Iterator[Row]:
    for comparison in comparisons:
        for pair in comparison.pairs:
            if pair.mine is None:
                continue
            verdict = options.say(words.VERDICT[pair.judgement.verdict].name)
            start: Row = [comparison.mine.rank, pair.mine.number, pair.mine.operator, verdict]
            for side, differences in ((words.INPUTS, pair.inputs), (words.OUTPUTS, pair.outputs)):
                for each in differences:
                    figures = [getattr(each.metrics, name, "") for name in _METRICS]
                    tensor = [each.mine.name, each.mine.dtype, _shape(each.mine)]
                    yield [*start, options.say(side), *tensor, *figures, one_line(each.picture)]
