"""The tables of an analysis, as text, Markdown and the page show them."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry import units
from torchferry.perf.compare.model import Cost, MatchKind, OperatorPair, RunComparison
from torchferry.perf.model import Analysis, Diagnosis, TimePart
from torchferry.perf.report import sentences, words
from torchferry.report.page import Column, Field, Table
from torchferry.text import Text

_PLACE = Column(Text("Place", "位置"), kind="code")
_OPERATOR = Column(Text("Operator", "算子"), kind="code")
_SHAPES = Column(Text("Shapes", "形状"))
_COUNT = Column(Text("Count", "次数"), kind="count")
_CALLS = Column(Text("Calls", "调用次数"), kind="count")
_TIME = Column(Text("Time", "时间"), kind="time")
_SHARE = Column(Text("Share", "占比"), kind="share")
_MORE = Column(Text("More per step", "每步多出"), kind="more")
_RATIO = Column(Text("Ratio", "比值"), kind="ratio")


def ranks(analyses: Sequence[Analysis]) -> Table:
    """The processes of a run, one row for each."""
    present = [part for part in TimePart if any(each.parts.get(part) for each in analyses)]
    names = words.PART_OF_HOST if all(each.is_host_only for each in analyses) else words.PART
    columns = (
        Column(Text("Rank", "rank")),
        Column(words.STEP, kind="time"),
        Column(Text("Own work", "自身工作"), kind="time"),
        *(Column(names[part], kind="share") for part in present),
        Column(Text("Main finding", "主要发现")),
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
    return Table(Text("Ranks", "各 rank"), columns, rows)


def parts(analysis: Analysis) -> Table:
    """What the time goes to."""
    title = words.WHERE_TIME_GOES if analysis.steps else words.WHERE_ALL_TIME_GOES
    rows = [(name, share, seconds) for _, name, seconds, share in sentences.parts(analysis)]
    return Table(title, (Column(words.WHAT), _SHARE, _TIME), rows)


def evidence(diagnosis: Diagnosis) -> Table:
    """A table of what a detector saw."""
    columns = (Column(words.WHAT, kind="code"), Column(Text("Detail", "详情")), _PLACE, _COUNT, _TIME, _SHARE)
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
    columns = [
        _OPERATOR,
        _SHAPES,
        Column(Text("Types", "类型")),
        _PLACE,
        _CALLS,
        Column(Text("Host time", "主机时间"), kind="time"),
    ]
    columns += [Column(Text("Device time", "设备时间"), kind="time")] * has_device
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
    columns += [_SHARE, *[Column(Text("Of roofline", "roofline 占比"), kind="share")] * has_roofline]
    return Table(Text("Operators", "算子"), tuple(columns), rows)


def kernels(analysis: Analysis) -> Table:
    """What the device did, by name."""
    columns = (
        Column(Text("Name", "名称"), kind="code"),
        Column(Text("Kind", "类别")),
        Column(Text("Launched by", "下发算子"), kind="code"),
        _CALLS,
        _TIME,
    )
    rows = [
        (each.name, words.SPAN_KIND[each.kind], each.operator, each.calls, each.seconds)
        for each in analysis.kernels
    ]
    return Table(Text("Device activity", "设备任务"), columns, rows)


# Two runs side by side.


def compared_parts(comparison: RunComparison) -> Table:
    """What the time of a step goes to in both."""
    names = sentences.part_names(comparison)
    columns = (
        Column(Text("per step", "每步")),
        Column(words.BASELINE, kind="time"),
        Column(words.COMPARED, kind="time"),
        _MORE,
    )
    rows = [(names[part], other, mine, mine - other) for part, other, mine in sentences.part_rows(comparison)]
    return Table(words.COMPARISON, columns, rows)


def pairs_of(comparison: RunComparison) -> list[tuple[str, Text, Sequence[OperatorPair]]]:
    """The lists of operators that are not empty, with their names for programs and for people."""
    found = [
        (
            "pairs",
            Text("Operators in both runs, largest extra cost first", "两次运行都有的算子，多耗时最多的在前"),
            comparison.pairs,
        ),
        ("only-compared", Text("In this run only", "仅在本次运行中"), comparison.only_compared),
        ("only-baseline", Text("In the baseline only", "仅在基线中"), comparison.only_baseline),
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
    """The operators of both runs with calls and times apart, to be sorted by either."""
    columns = (
        _OPERATOR,
        _SHAPES,
        Column(words.HOW),
        _PLACE,
        Column(Text("Calls, baseline", "基线调用次数"), kind="count"),
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
