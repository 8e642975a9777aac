"""What is said of curves, in every format: facts of the runs, what stands out, rows of modules; tables, and CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from torchferry import units
from torchferry.accuracy.curves import words
from torchferry.accuracy.curves.runs import Array, Series, WatchedRun
from torchferry.accuracy.curves.trends import RunTrend, Trends
from torchferry.accuracy.file.chunks import is_being_written
from torchferry.accuracy.watch import rows
from torchferry.report.formats import Options, Reports
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.records import BAD, DOUBT, GOOD, Grade
from torchferry.report.safe import one_line
from torchferry.text import Text

REPORTS: Reports[Trends] = Reports(
    {"csv": "torchferry.accuracy.curves.reports:to_csv"},
    body="torchferry.accuracy.curves.html:to_body",
    page="torchferry.accuracy.curves.reports:page_of",
)
_TITLE = Text("Curves", "曲线")
_FACTS = {
    "program": Text("Program", "程序"),
    "device": Text("Device", "设备"),
    "steps": Text("Watched", "监视"),
    "time": Text("Time", "时长"),
    "rank": Text("Rank", "Rank"),
    "state": Text("State", "状态"),
}
_RUNNING = Text("still running", "仍在运行")
_ENDED = Text("ended", "已结束")
_SKIPPED = Text("the GradScaler skipped {count} of these steps", "GradScaler 跳过了其中 {count} 步")
_SIMULATED = Text("{device} of {vendor} (simulated)", "{vendor} 的 {device}（模拟）")
_FINE, _ODD, _WRONG = (
    Grade(Text("fine", "正常"), GOOD, "✓"),
    Grade(Text("check", "需关注"), DOUBT, "!"),
    Grade(Text("wrong", "异常"), BAD, "✕"),
)
_SHOWN_SPIKES = 5
_SHOWN_MODULES = 5
_ROWS_OF_MODULES = 20  # in text


# Facts of a run, and what stands out.


def heads(run: RunTrend) -> list[tuple[Text, Text]]:
    """What is known of a run, with its name."""
    header, steps = run.header, run.steps
    simulated = _SIMULATED.format(device=header.device, vendor=header.vendor)
    plain = " ".join(filter(None, (header.device, header.vendor and f"({header.vendor})")))
    found = {
        "program": _same(header.program),
        "device": simulated if header.simulated else _same(plain),
        "steps": words.STEPS.format(
            count=f"{len(steps):,}", first=f"{_step(steps, 0):,}", last=f"{_step(steps, -1):,}"
        ),
        "time": _same(units.duration(run.seconds)),
        "rank": _same(f"{header.rank} / {header.world}" if header.world > 1 else ""),
        "state": _ENDED if header.complete else _RUNNING if is_being_written(run.path) else words.CUT_OFF,
    }
    return [(_FACTS[name], value) for name, value in found.items() if value.en]


def _same(text: str) -> Text:
    return Text(one_line(text), one_line(text))


def _step(steps: Array, at: int) -> int:
    return int(steps[at]) if len(steps) else 0


class CurveRemark(NamedTuple):
    """Something that stands out."""

    text: Text
    grade: Grade
    module: str = ""  # which one, as tables call it


def remarks(trends: Trends) -> list[CurveRemark]:
    """What stands out: NaN, jumps, and where two runs part."""
    found: list[CurveRemark] = []
    several = len(trends.runs) > 1
    for run, ranks in zip(trends.runs, trends.ranks, strict=True):
        for each in ranks or (run,):
            label = one_line(each.path.name) if several or ranks else ""
            of_run = _of_run(each, is_one_of_many=bool(ranks))
            found += [remark._replace(text=_labelled(label, remark.text)) for remark in of_run]
    return found + list(_of_two(trends))


def _of_run(run: RunTrend, *, is_one_of_many: bool) -> Iterator[CurveRemark]:
    if bad := run.bad:
        series = run.series[bad[0]]
        what = "NaN" if run.first_kind[bad[0]] else "Inf"
        step = f"{run.first_bad[bad[0]]:,}"
        module = _label(series.model, series.module) if series.is_of_module else ""
        yield CurveRemark(
            words.NOT_FINITE.format(what=what, step=step, where=words.where(series)), _WRONG, module
        )
    elif not is_one_of_many:
        yield CurveRemark(words.ALL_FINITE, _FINE)
    for row in (rows.LOSS, rows.GRADIENT_NORM):
        if found := run.spikes(row):
            steps = _same(", ".join(f"{step:,}" for step in found[:_SHOWN_SPIKES]))
            if len(found) > _SHOWN_SPIKES:
                steps = words.AND_MORE.format(steps=steps, count=len(found) - _SHOWN_SPIKES)
            yield CurveRemark(words.SPIKES.format(what=words.ROWS[row], steps=steps), _ODD)


def _of_two(trends: Trends) -> Iterator[CurveRemark]:
    found = trends.differences
    if found is None:
        return
    if not found.steps:
        yield CurveRemark(words.NO_COMMON, _ODD)
        return
    for row in (rows.LOSS, rows.GRADIENT_NORM):
        what = words.ROWS[row]
        for at, number in enumerate(found.mine.tolist()):
            most, step = float(found.farthest[at]), int(found.first[at])
            if trends.runs[0].series[number].row != row or math.isnan(most):
                continue
            shown = units.short_number(most)
            if step:
                yield CurveRemark(words.PART.format(what=what, step=f"{step:,}", most=shown), _ODD)
            else:
                yield CurveRemark((words.SAME if most else words.EQUAL).format(what=what, most=shown), _FINE)


def _labelled(label: str, text: Text) -> Text:
    return Text(f"{label}: {text.en}", f"{label}：{text.zh}") if label else text


def notes_of(trends: Trends) -> list[Text]:
    """What a reader should know besides."""
    found: list[Text] = []
    for run, ranks in zip(trends.runs, trends.ranks, strict=True):
        if ranks:
            found.append(words.SHOWN_RANK.format(rank=run.header.rank, count=len(ranks)))
        if run.skipped:
            found.append(_labelled(one_line(run.path.name), _SKIPPED.format(count=f"{run.skipped:,}")))
    if trends.differences is not None:
        found.append(words.COMMON.format(count=f"{trends.differences.steps:,}"))
        for which, alone in zip((words.MINE, words.GOLDEN), trends.differences.alone, strict=True):
            if alone:
                found.append(_alone(which, alone))
    return found


def _alone(which: Text, alone: Sequence[Series]) -> Text:
    modules = list(dict.fromkeys(_label(each.model, each.module) or each.row for each in alone))
    shown = ", ".join(modules[:_SHOWN_MODULES]) + (" ..." if len(modules) > _SHOWN_MODULES else "")
    return words.ALONE.format(count=f"{len(alone):,}", which=which, modules=shown)


# Modules.


@dataclass(frozen=True)
class ModuleRow:
    """A module, and the last figures of it."""

    model: str
    module: str
    node: str
    output: float | None = None  # root mean square of its first result
    gradient: float | None = None  # norm, of all below it
    update: float | None = None  # over the parameter, the largest of its own
    first_bad: int | None = None
    farthest: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Model and path."""
        return self.model, self.module

    @property
    def label(self) -> str:
        """As it is called in tables and in the address of a page."""
        return _label(self.model, self.module) or "?"


def _label(model: str, module: str) -> str:
    return one_line(": ".join(filter(None, (model, module))))


def module_rows(trends: Trends) -> list[ModuleRow]:
    """In the order of the model, each before what is in it."""
    series: dict[tuple[str, str], list[int]] = {}
    nodes: dict[tuple[str, str], str] = {}
    run = trends.runs[0]
    for number, each in enumerate(run.series):
        if each.is_of_module and words.known(each):
            series.setdefault((each.model, each.module), []).append(number)
    for other in trends.runs:
        for each in other.series:
            if each.is_of_module and words.known(each):
                series.setdefault((each.model, each.module), [])
                if each.node:
                    nodes.setdefault((each.model, each.module), each.node)
    farthest: dict[int, float] = {}
    if trends.differences is not None:
        farthest = dict(
            zip(trends.differences.mine.tolist(), trends.differences.farthest.tolist(), strict=True)
        )
    return [
        _module_row(run, key, one_line(nodes.get(key, "")), series[key], farthest)
        for key in _in_tree_order(series)
    ]


def _in_tree_order(
    keys: Iterator[tuple[str, str]] | dict[tuple[str, str], list[int]],
) -> list[tuple[str, str]]:
    tree: dict[str, dict] = {}  # type: ignore[type-arg]  # of itself
    for model, module in keys:
        branch = tree.setdefault(model, {})
        for part in filter(None, module.split(".")):
            branch = branch.setdefault(part, {})
    known = set(keys)

    def walk(model: str, path: str, branch: dict) -> Iterator[tuple[str, str]]:  # type: ignore[type-arg]
        if (model, path) in known:
            yield model, path
        for part, below in branch.items():
            yield from walk(model, f"{path}.{part}" if path else part, below)

    return list(chain.from_iterable(walk(model, "", branch) for model, branch in tree.items()))


def _module_row(
    run: RunTrend, key: tuple[str, str], node: str, numbers: Sequence[int], farthest: dict[int, float]
) -> ModuleRow:
    last: dict[str, dict[str, float]] = {}
    for number in numbers:
        each = run.series[number]
        if not math.isnan(run.last[number]):
            last.setdefault(each.row, {})[each.name] = float(run.last[number])
    gradients = last.get(rows.GRADIENT, {})
    bad = [int(run.first_bad[number]) for number in numbers if run.first_bad[number]]
    apart = [farthest[number] for number in numbers if farthest.get(number, math.nan) == farthest.get(number)]
    return ModuleRow(
        *key,
        node,
        output=next(iter(last.get(rows.MODULE, {}).values()), None),
        gradient=gradients.get("", next(iter(gradients.values()), None)),
        update=max(last.get(rows.UPDATE, {}).values(), default=None),
        first_bad=min(bad, default=None),
        farthest=max(apart, default=None),
    )


# The tables of the formats for people.

_BLOCKS = "▁▂▃▄▅▆▇█"
_COURSE = 28  # characters
_CURVE, _RUN = Text("Curve", "曲线"), Text("Run", "运行")
_LAST, _LEAST, _MOST = Text("Last", "最新"), Text("Smallest", "最小"), Text("Largest", "最大")
_COURSE_HEAD = Text("Trend", "走势")
_TRAINING, _MODULES = Text("Training", "训练过程"), Text("Modules, latest values", "模块（最新值）")


def page_of(trends: Trends, options: Options) -> Page:
    """Verdicts, the curves of the training in a line each, and the modules."""
    verdicts = tuple((each.text, each.grade.style) for each in remarks(trends))
    facts = [_labelled(one_line(run.path.name), _joined(run)) for run in trends.runs]
    table = Table(_TRAINING, _training_columns(trends), list(_training_rows(trends)))
    modules = _modules_table(trends)
    limit = options.limit or (None if options.everything else _ROWS_OF_MODULES)
    return Page(_TITLE, verdicts, (table, modules.first(limit)), (*facts, *notes_of(trends)))


def _joined(run: RunTrend) -> Text:
    found = [value for _, value in heads(run)]
    return Text(", ".join(each.en for each in found), "，".join(each.zh for each in found))


def _training_columns(trends: Trends) -> tuple[Column, ...]:
    run = [Column(_RUN, is_whole=True)] * (len(trends.runs) > 1)
    numbers = [Column(head, is_number=True) for head in (_LAST, _LEAST, _MOST)]
    return (Column(_CURVE, is_whole=True), *run, *numbers, Column(_COURSE_HEAD, is_whole=True))


def _training_rows(trends: Trends) -> Iterator[tuple[Cell | Text | str, ...]]:
    for row in words.OF_TRAINING:
        for run, side in zip(trends.runs, (words.MINE, words.GOLDEN), strict=False):
            for at, number in enumerate(run.whole.columns.tolist()):
                series = run.series[number]
                if series.row != row or np.isnan(run.sizes[:, at]).all():
                    continue
                values, named = run.sizes[:, at], words.where(series)
                figures = (run.last[number], np.nanmin(values), np.nanmax(values))
                drawn = sparkline(run.whole.high[:, at], run.whole.nans[:, at] + run.whole.infinities[:, at])
                yield (named, *([side] * (len(trends.runs) > 1)), *map(_number_cell, figures), drawn)


def _number_cell(value: float | None) -> Cell:
    if value is None or math.isnan(value):
        return Cell("")
    return Cell(units.number(float(f"{value:.5g}")), value=float(value))


def _modules_table(trends: Trends) -> Table:
    found = module_rows(trends)
    has_two = trends.differences is not None
    if has_two:
        found = sorted(found, key=lambda row: -(row.farthest or 0.0))
    found = sorted(found, key=lambda row: row.first_bad or math.inf)
    columns = (
        Column(words.MODULE, kind="code", is_whole=True),
        Column(words.TYPE),
        *(Column(head, is_number=True) for head in (words.OUTPUT, words.GRADIENT, words.UPDATE_RATIO)),
        *([Column(words.DIFFERENCE, is_number=True)] * has_two),
        Column(words.FIRST_BAD, kind="count"),
    )
    made = [
        (
            row.label,
            row.node,
            *map(_number_cell, (row.output, row.gradient, row.update)),
            *([_short_cell(row.farthest)] * has_two),
            row.first_bad,
        )
        for row in found
    ]
    return Table(_MODULES, columns, made).without_empty_columns()


def _short_cell(value: float | None) -> Cell:
    return Cell(
        "" if value is None else units.short_number(value), value=value if value != math.inf else None
    )


def sparkline(values: Array, bad: Array) -> str:
    """The course of a curve in a line of blocks; a cross where something is not finite, a space where there is nothing."""
    groups = np.array_split(np.arange(len(values)), min(_COURSE, len(values)))
    highest = [_most(values[group]) for group in groups]
    finite = [value for value in highest if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    is_logarithmic = low > 0 and high / low >= 1000
    measure = math.log10 if is_logarithmic else float
    span = measure(high) - measure(low) if finite else 0.0

    def block(value: float, group: Array) -> str:
        if _most(bad[group]) > 0:
            return "×"
        if not math.isfinite(value):
            return " "
        share = (measure(value) - measure(low)) / span if span else 0.0
        return _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]

    return "".join(block(value, group) for value, group in zip(highest, groups, strict=True)).rstrip()


def _most(values: Array) -> float:
    return float(np.fmax.reduce(values)) if len(values) else math.nan


# Every figure of every step, for scripts.

_CSV = (
    "run", "rank", "step", "time", "curve", "model", "module", "type", "tensor", "value", "count", "nans", "infinities",
    "zeros", "minimum", "maximum", "mean", "rms",
)  # fmt: skip
_AT_ONCE = 64  # steps


def to_csv(trends: Trends, _options: Options) -> Iterator[str]:
    """A row a step and a series, nothing thinned; `value` is what the page draws."""
    from torchferry.report.csv import csv_lines

    yield from csv_lines([_CSV])
    for shown, ranks in zip(trends.runs, trends.ranks, strict=True):
        for each in ranks or (shown,):
            run = WatchedRun(each.path, trends.choice.modules)
            try:
                yield from csv_lines(_csv_rows(run, trends), mark=False)
            finally:
                run.close()


def _csv_rows(run: WatchedRun, trends: Trends) -> Iterator[tuple[str | int | float, ...]]:
    chosen = np.flatnonzero(np.isin(run.steps, trends.choice.of(run.steps)))
    if not len(chosen):
        return
    heads_of = [(each.row, each.model, each.module, each.node, each.name) for each in run.series]
    named = [tuple(map(one_line, each)) for each in heads_of]
    fields = ("size", "count", "nans", "infinities", "zeros", "minimum", "maximum", "mean", "rms")
    for start in range(int(chosen[0]), int(chosen[-1]) + 1, _AT_ONCE):
        end = min(start + _AT_ONCE, int(chosen[-1]) + 1)
        figures = run.figures(start, end)
        columns = [getattr(figures, name) for name in fields]
        for at in range(end - start):
            head = one_line(str(run.path)), run.header.rank, int(run.steps[start + at])
            moment = round(float(run.times[start + at]), 3) if run.has_times else ""
            for number in np.flatnonzero(figures.count[at]).tolist():
                values = (column[at, number] for column in columns)
                yield (*head, moment, *named[number], *map(_csv_number, values))


def _csv_number(value: float) -> str | int | float:
    return "" if value != value else int(value) if value == int(value) else float(value)
