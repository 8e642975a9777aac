"""An Excel workbook: what the comparison comes to, the calls, the tensors with their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import islice

from torchferry.accuracy.compare.model import Comparison, Pair
from torchferry.accuracy.judge.model import Difference
from torchferry.accuracy.model import Metrics
from torchferry.accuracy.report import sentences, words
from torchferry.report.lists import without_times
from torchferry.report.options import Options
from torchferry.report.safe import one_line
from torchferry.report.xlsx import MAX_ROWS, Row, add_sheet
from torchferry.text import Language, Text

_CALL_COLUMNS = (
    (words.RANK_COLUMN, 8), (words.NUMBER, 10), (words.OPERATOR, 44), (words.VERDICT_COLUMN, 18), (words.SORT_COLUMN, 40),
    (words.OWN_ERROR, 14), (words.GOLDEN_ERROR, 14), (words.LIMIT, 14), (words.STEP, 8), (words.PHASE_COLUMN, 12),
    (words.MODEL, 18), (words.MODULE, 34), (words.PLACE, 30), (words.HOW_COLUMN, 18), (words.GOLDEN_NUMBER, 12),
    (words.GOLDEN_OPERATOR, 44), (words.WHY, 80),
)  # fmt: skip
_METRICS = tuple(each.name for each in fields(Metrics))


def to_xlsx(comparisons: Sequence[Comparison], language: Language) -> bytes:
    """The workbook; the same comparison gives the same bytes."""
    import io

    from openpyxl import Workbook

    options = Options(language)
    book = Workbook(write_only=True)
    add_sheet(
        book, words.SUMMARY, [(words.FACT, 34), (words.VALUE, 120)], _summary(comparisons, options), options
    )
    add_sheet(book, words.CALLS, _CALL_COLUMNS, islice(_calls(comparisons, options), MAX_ROWS), options)
    columns = [
        (words.RANK_COLUMN, 8), (words.NUMBER, 10), (words.OPERATOR, 44), (words.VERDICT_COLUMN, 18), (words.SIDE, 10),
        (words.TENSOR, 26), (words.DTYPE, 12), (words.SHAPE, 22), *((Text(name, name), 16) for name in _METRICS),
        (words.PICTURE_COLUMN, 36),
    ]  # fmt: skip
    add_sheet(book, words.DIFFERENCES, columns, islice(_tensors(comparisons, options), MAX_ROWS), options)
    output = io.BytesIO()
    book.save(output)
    return without_times(output.getvalue())


def _summary(comparisons: Sequence[Comparison], options: Options) -> Iterator[Row]:
    say = options.say
    for comparison in comparisons:
        facts: list[tuple[str, str | int | float]] = [
            (say(words.RANK_COLUMN), comparison.mine.rank),
            (say(words.VERDICT_COLUMN), say(sentences.headline(comparison))),
            *((say(name), say(text)) for name, text in sentences.details(comparison)),
            *((say(what), "\n".join(lines)) for what, lines in sentences.next_commands(comparison)),
            *((say(words.SUMMARY), say(text)) for text in sentences.network(comparison)),
            (f"{say(words.FILE)} ({say(words.MINE)})", comparison.mine_path),
            (f"{say(words.FILE)} ({say(words.GOLDEN)})", comparison.golden_path),
            *((say(words.NOTE), say(note)) for note in comparison.notes),
            *(
                (f"{say(words.COUNT)}: {say(words.VERDICT[verdict])}", count)
                for verdict, count in sentences.verdict_counts(comparison).items()
            ),
        ]
        yield from ([name, value] for name, value in facts)


def _calls(comparisons: Sequence[Comparison], options: Options) -> Iterator[Row]:
    for comparison in comparisons:
        for pair in comparison.pairs:
            yield _call(pair, comparison.mine.rank, options)


def _call(pair: Pair, rank: int, options: Options) -> Row:
    say, call, judgement = options.say, sentences.call_of(pair), pair.judgement
    return [
        rank,
        pair.mine.number if pair.mine else "",
        pair.mine.operator if pair.mine else "",
        say(words.VERDICT[judgement.verdict]) if sentences.is_judged(pair) else "",
        say(words.SORT[judgement.sort]),
        *(_figure(each) for each in (judgement.own_error, judgement.golden_error, judgement.limit)),
        call.step,
        say(words.PHASE.get(call.phase, Text(call.phase, call.phase))),
        call.model,
        call.module,
        call.place,
        say(words.HOW[pair.how]),
        pair.golden.number if pair.golden else "",
        pair.golden.operator if pair.golden else "",
        say(judgement.why) if judgement.why else "",
    ]


def _tensors(comparisons: Sequence[Comparison], options: Options) -> Iterator[Row]:
    for comparison in comparisons:
        for pair in comparison.pairs:
            if pair.mine is None:
                continue
            start: Row = [
                comparison.mine.rank, pair.mine.number, pair.mine.operator,
                options.say(words.VERDICT[pair.judgement.verdict]),
            ]  # fmt: skip
            for side, differences in ((words.INPUTS, pair.inputs), (words.OUTPUTS, pair.outputs)):
                for difference in differences:
                    yield [*start, options.say(side), *_tensor(difference)]


def _tensor(difference: Difference) -> Row:
    metrics = difference.metrics
    figures = [_figure(getattr(metrics, name)) if metrics else "" for name in _METRICS]
    shape = "x".join(map(str, difference.mine.shape))
    return [difference.mine.name, difference.mine.dtype, shape, *figures, one_line(difference.picture)]


def _figure(value: float | None) -> float | str:
    """A cell can't hold what is not finite."""
    if value is None:
        return ""
    return value if abs(value) < float("inf") else str(value)
