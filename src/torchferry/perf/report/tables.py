"""The tables of an analysis, as text, Markdown and the page show them."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry import units
from torchferry.perf.compare.model import Cost, MatchKind, OperatorPair, RunComparison
from torchferry.perf.model import Analysis, Diagnosis, TimePart
from torchferry.perf.report import sentences, words
from torchferry.report.page import Column, Field, Table
from torchferry.text import Text

_PLACE = Column(words.PLACE, kind="code")
_OPERATOR = Column(words.OPERATOR, kind="code")
_SHAPES = Column(words.SHAPES)
_COUNT = Column(words.COUNT, kind="count")
_CALLS = Column(words.CALLS, kind="count")
_TIME = Column(words.TIME, kind="time")
_SHARE = Column(words.SHARE, kind="share")
_MORE = Column(words.MORE, kind="more")
_RATIO = Column(words.RATIO, kind="ratio")


def ranks(analyses: Sequence[Analysis]) -> Table:
    """One row for each process."""
    present = [part for part in TimePart if any(each.parts.get(part) for each in analyses)]
    names = words.PART_OF_HOST if all(each.is_host_only for each in analyses) else words.PART
    columns = (
        Column(words.RANK),
        Column(words.STEP, kind="time"),
        Column(words.WORKS, kind="time"),
        *(Column(names[part], kind="share") for part in present),
        Column(words.MAIN_FINDING),
    )
    rows = [
        (
            sentences.rank_name(each, position),
            sentences.step_seconds(each),
            sentences.own_seconds(each),
            *(each.share(part) for part in present),
            each.diagnoses[0].title if each.diagnoses else "",
        )
        for position, each in enumerate(analyses)
    ]
    return Table(words.RANKS, columns, rows)


def parts(analysis: Analysis) -> Table:
    """What the time goes to."""
    title = words.WHERE_TIME_GOES if analysis.steps else words.WHERE_ALL_TIME_GOES
    rows = [(name, share, seconds) for _, name, seconds, share in sentences.parts(analysis)]
    return Table(title, (Column(words.WHAT), _SHARE, _TIME), rows)


def evidence(diagnosis: Diagnosis) -> Table:
    """What a detector saw."""
    columns = (Column(words.WHAT, kind="code"), Column(words.DETAIL), _PLACE, _COUNT, _TIME, _SHARE)
    rows = [
        (
            each.what,
            each.detail,
            sentences.place(each.place),
            each.count or None,
            each.seconds or None,
            each.share or None,
        )
        for each in diagnosis.evidence
    ]
    return Table(diagnosis.title, columns, rows)


def operators(analysis: Analysis, *, rooflines: bool = False) -> Table:
    """Operators by name, shapes and types; with the share of what the device could do, if that is known and asked for."""
    has_device = not analysis.is_host_only
    has_roofline = rooflines and any(each.roofline is not None for each in analysis.operators)
    columns = [_OPERATOR, _SHAPES, Column(words.DTYPES), _PLACE, _CALLS, Column(words.HOST_TIME, kind="time")]
    columns += [Column(words.DEVICE_TIME, kind="time")] * has_device
    rows = [
        (
            each.operator,
            each.shapes,
            each.dtypes,
            sentences.place(each.place),
            each.calls,
            each.host_seconds or None,
            *[each.device_seconds] * has_device,
            each.device_seconds / analysis.seconds if analysis.seconds else None,
            *[each.roofline] * has_roofline,
        )
        for each in analysis.operators
    ]
    columns += [_SHARE, *[Column(words.ROOFLINE, kind="share")] * has_roofline]
    return Table(words.OPERATORS, tuple(columns), rows)


def kernels(analysis: Analysis) -> Table:
    """What the device did, by name."""
    columns = (
        Column(words.KERNEL, kind="code"),
        Column(words.KIND),
        Column(words.LAUNCHED_BY, kind="code"),
        _CALLS,
        _TIME,
    )
    rows = [
        (each.name, words.SPAN_KIND[each.kind], each.operator, each.calls, each.seconds)
        for each in analysis.kernels
    ]
    return Table(words.KERNELS, columns, rows)


# Two runs side by side.


def compared_parts(comparison: RunComparison) -> Table:
    """What the time of a step goes to in both."""
    names = sentences.part_names(comparison)
    columns = (
        Column(words.PER_STEP),
        Column(words.BASELINE, kind="time"),
        Column(words.COMPARED, kind="time"),
        _MORE,
    )
    rows = [(names[part], other, mine, mine - other) for part, other, mine in sentences.part_rows(comparison)]
    return Table(words.COMPARISON, columns, rows)


def pairs_of(comparison: RunComparison) -> list[tuple[str, Text, Sequence[OperatorPair]]]:
    """The lists of operators that are not empty, with their names for programs and for people."""
    found = [
        ("pairs", words.PAIRS, comparison.pairs),
        ("only-compared", words.ONLY_COMPARED, comparison.only_compared),
        ("only-baseline", words.ONLY_BASELINE, comparison.only_baseline),
    ]
    return [each for each in found if each[2]]


def pairs(title: Text, found: Sequence[OperatorPair], *, says_exact: bool) -> Table:
    """Operators of both runs. That they were matched by name, shapes and types is said only where there is room."""
    columns = (
        _OPERATOR,
        _SHAPES,
        Column(words.HOW),
        _PLACE,
        Column(words.BASELINE, is_number=True),
        Column(words.COMPARED, is_number=True),
        _MORE,
        _RATIO,
    )
    rows: list[tuple[Field, ...]] = [
        (
            *_named(
                each, words.MATCH[each.match] if says_exact or each.match is not MatchKind.EXACT else None
            ),
            _cost(each.baseline),
            _cost(each.compared),
            each.more if each.baseline and each.compared else None,
            each.ratio,
        )
        for each in found
    ]
    return Table(title, columns, rows)


def pairs_in_detail(title: Text, found: Sequence[OperatorPair]) -> Table:
    """The same with calls and times apart, to be sorted by either."""
    columns = (
        _OPERATOR,
        _SHAPES,
        Column(words.HOW),
        _PLACE,
        Column(words.CALLS_OF_BASELINE, kind="count"),
        _CALLS,
        Column(words.BASELINE, kind="time"),
        Column(words.COMPARED, kind="time"),
        _MORE,
        _RATIO,
    )
    rows: list[tuple[Field, ...]] = []
    for each in found:
        other, mine = each.baseline, each.compared
        costs = (other and other.calls, mine and mine.calls, other and other.seconds, mine and mine.seconds)
        rows.append((*_named(each, words.MATCH[each.match]), *costs, each.more, each.ratio))
    return Table(title, columns, rows)


def _named(pair: OperatorPair, how: Text | None) -> tuple[Field, ...]:
    """Names, shapes and types, also the baseline's where they differ; how they were matched, if they were; the line."""
    names, shapes = pair.operator, " ".join(filter(None, [pair.shapes, pair.dtypes]))
    other = " ".join(filter(None, [pair.baseline_shapes, pair.baseline_dtypes]))
    if pair.baseline_operator and pair.baseline_operator != pair.operator:
        names += f" = {pair.baseline_operator}"
    if other and other != shapes:
        shapes += f" = {other}"
    is_matched = pair.baseline is not None and pair.compared is not None
    return names, shapes, how if is_matched else None, sentences.place(pair.place)


def _cost(found: Cost | None) -> str:
    return f"{units.duration(found.seconds)} ×{found.calls:g}" if found is not None else ""
