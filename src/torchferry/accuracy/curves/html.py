"""The page of curves: what is known of the runs as HTML, and their figures as data from which the script draws."""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchferry.accuracy.curves import words
from torchferry.accuracy.curves.reports import CurveRemark, ModuleRow, heads, module_rows, notes_of, remarks
from torchferry.accuracy.curves.runs import Array, Series
from torchferry.accuracy.curves.trends import RunTrend, Thinned, Trends
from torchferry.accuracy.watch import rows
from torchferry.report.bodies import PageBody, whole_page
from torchferry.report.formats import Options
from torchferry.report.html import (
    ARROW,
    CHARTS,
    CHARTS_STYLE,
    CONTROLS,
    ELEMENTS,
    both,
    data_for_script,
    escaped,
    filters,
    pager,
    quiet,
    scrolled,
    section,
    sortable_head,
)
from torchferry.report.safe import one_line
from torchferry.report.svg import MARKS, chart_of, figure
from torchferry.text import Text

_FIELDS = ("low", "high", "middle", "mean", "minimum", "maximum", "zeros", "nans", "infinities")
_DIGITS_OF_MODULES = np.uint32(
    0xFFFFFF00
)  # 16 bits of mantissa: what a picture shows, and zlib can make small
_TRAINING, _MODULES = Text("Training", "训练过程"), Text("Modules", "模块")
_SEARCH = Text("Search modules and types", "搜索模块和类型")
_SHOWN = Text("% of {count} modules", "% / {count} 个模块")
_SCALE, _FIGURE = Text("Scale", "坐标"), Text("Figure", "统计值")
_SCALES = {
    "automatic": Text("automatic", "自动"),
    "linear": Text("linear", "线性"),
    "logarithmic": Text("logarithmic", "对数"),
}
_NO_SCRIPT = Text(
    "Without JavaScript, only these two curves are shown.", "未启用 JavaScript 时仅显示这两条曲线。"
)
_HELP = Text(
    "Select modules in the table; for a module with submodules, gradients and parameters cover "
    "everything below it.",
    "在表格中选择模块；对于含子模块的模块，梯度和参数包含其下全部内容。",
)
_WORDS = {
    "thinned": Text(
        "The line is the mean of every {count} steps; the band spans minimum to maximum.",
        "曲线为每 {count} 步的平均值，色带为最小值至最大值。",
    ),
    "dropped": Text(
        "{count} more curves are not drawn; select fewer modules.",
        "另有 {count} 条曲线未绘制；请减少所选模块。",
    ),
    "difference": words.DIFFERENCE,
    "both": Text("mine and golden", "待测与标杆"),
    "equal": Text("Equal at all common steps.", "在双方共有的所有步上相等。"),
    "spike": Text("Yellow line: the curve jumps.", "黄线：曲线突增。"),
    "first": Text("Red line: first NaN or Inf.", "红线：首次出现 NaN 或 Inf。"),
    "together": words.TOGETHER,
    "live": Text("The program is running; the page updates itself.", "程序正在运行；页面会自动更新。"),
    "stale": Text("No new data since {time}.", "自 {time} 起没有新数据。"),
}
_COLUMNS = ("text", "number", "number", "number", "number")  # how the script sorts them


def to_body(trends: Trends, options: Options, live: float = 0.0) -> PageBody:
    """The page; one that is `live` looks every so many seconds for a newer one in its place."""
    names = [one_line(run.path.name) for run in trends.runs]
    found = module_rows(trends)
    whole = f'{_controls()}<div class="figures" id="training"></div>{_static(trends)}'
    return PageBody(
        "curves",
        " → ".join(names),
        heading=ARROW.join(map(escaped, names)),
        overview="".join(map(_card, trends.runs)) + _remarks(trends),
        sections=(
            section(_TRAINING, whole, "whole"),
            _modules_section(trends, found),
            _notes(trends),
            data_for_script(_data(trends, found, live), "data"),
        ),
        package=str(__package__),
        styles=(CHARTS_STYLE, "curves.css"),
        scripts=(ELEMENTS, CONTROLS, CHARTS, "curves.js"),
    )


def page(trends: Trends, options: Options, live: float = 0.0) -> str:
    """One file in both languages."""
    return whole_page(to_body(trends, options, live), options.language, shows_itself=bool(live))


def _card(run: RunTrend) -> str:
    lines = "".join(f"<div><dt>{both(name)}</dt><dd>{both(value)}</dd></div>" for name, value in heads(run))
    return f'<div class="card info"><h2>{escaped(one_line(run.path.name))}</h2><dl>{lines}</dl></div>'


def _remarks(trends: Trends) -> str:
    found = remarks(trends)
    lines = "".join(
        f'<li class="{each.grade.kind}"><i aria-hidden="true">{each.grade.sign}</i> {_said(each)}</li>'
        for each in found
    )
    return f'<ul class="remarks">{lines}</ul>' if found else ""


def _said(remark: CurveRemark) -> str:
    """In words; of a module, as a button with which the script chooses it."""
    text = both(remark.text)
    if not remark.module:
        return text
    return f'<button type="button" class="plain" data-module="{escaped(remark.module)}">{text}</button>'


def _notes(trends: Trends) -> str:
    return f'<section class="notes">{"".join(map(quiet, notes_of(trends)))}</section>'


def _controls() -> str:
    return f'<p class="choices" hidden>{_select("scale", _SCALE, _SCALES)}<span class="quiet" id="state" role="status"></span></p>'


def _select(name: str, label: Text, choices: dict[str, Text]) -> str:
    """A list to choose from; the script puts the words of the page's language in."""
    entries = "".join(
        f'<option value="{value}" data-en="{escaped(text.en)}" data-zh="{escaped(text.zh)}">{escaped(text.en)}</option>'
        for value, text in choices.items()
    )
    return f'<label class="quiet" for="{name}">{both(label)}</label><select id="{name}">{entries}</select>'


def _static(trends: Trends) -> str:
    """What readers without scripts see."""
    drawn = []
    for row in (rows.LOSS, rows.GRADIENT_NORM):
        curves = [dict(zip(run.steps.tolist(), run.values(row).tolist(), strict=True)) for run in trends.runs]
        known = [{step: value for step, value in curve.items() if value == value} for curve in curves]
        if any(known):
            drawn.append(figure(chart_of(words.ROWS[row], _names(trends), known), "b"))
    return f"<noscript>{''.join(drawn)}{quiet(_NO_SCRIPT)}</noscript>" if drawn else ""


def _names(trends: Trends) -> tuple[Text, ...]:
    if len(trends.runs) == 1:
        return (Text(*[one_line(trends.runs[0].path.name)] * 2),)
    return words.MINE, words.GOLDEN


def _modules_section(trends: Trends, found: Sequence[ModuleRow]) -> str:
    if not found:
        return ""
    names = [words.MODULE, words.OUTPUT, words.GRADIENT, words.UPDATE_RATIO]
    names.append(words.DIFFERENCE if trends.differences else words.FIRST_BAD)
    table = scrolled(f"{sortable_head(zip(names, _COLUMNS, strict=True))}<tbody></tbody>", "rules modules")
    shown = _SHOWN.format(count=f"{len(found):,}")
    choice = f'<p class="choices" hidden>{_select("figure", _FIGURE, words.FIGURES)}<span class="chips" id="chosen"></span></p>'
    content = (
        f'{quiet(_HELP)}<div class="beside"><div class="choosing">{filters(_SEARCH, "", shown)}{table}{pager()}</div>'
        f'<div class="drawn">{choice}<div class="figures" id="modules-drawn"></div></div></div>'
    )
    return section(_MODULES, content, "modules", count=len(found))


# The data.


@dataclass
class _Numbers:
    """Curves one behind the other; equal values throughout are one."""

    parts: list[Array]
    size: int = 0

    def put(self, values: Array) -> float | int | list[float] | None:
        """Where the curve begins; a list of the only value of one that is constant; None: it has none."""
        finite = values[~np.isnan(values)]
        if not len(finite):
            return None
        if len(finite) == len(values) and (values == values[0]).all() and np.isfinite(values[0]):
            return [float(f"{values[0]:.7g}")]
        self.parts.append(values)
        self.size += len(values)
        return self.size - len(values)

    def packed(self) -> str:
        """The bytes of all numbers, first those of the lowest weight, made small."""
        every = np.concatenate([np.empty(0, np.float32), *self.parts]).astype("<f4")
        planes = every.view(np.uint8).reshape(-1, 4).T
        return base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode()


def _data(trends: Trends, found: Sequence[ModuleRow], live: float) -> dict[str, Any]:
    numbers = _Numbers([])
    of_module = {row.key: at for at, row in enumerate(found)}
    series = [
        *_series(trends, numbers, is_whole=True, places={}),
        *_series(trends, numbers, is_whole=False, places=of_module),
    ]
    axes = (trends.whole_axis, trends.module_axis)
    return {
        "live": live,
        "written": round(time.time(), 1),
        "axes": [
            {"first": axis.first.tolist(), "last": axis.last.tolist(), "size": axis.size} for axis in axes
        ],
        "runs": [list(name) for name in _names(trends)],
        "fields": _FIELDS,
        "series": series,
        "modules": [_packed(row, trends) for row in found],
        "rows": {name: list(text) for name, text in words.ROWS.items()},
        "training": words.OF_TRAINING,
        "sizes": {name: list(text) for name, text in words.SIZES.items()},
        "figures": {name: list(text) for name, text in words.FIGURES.items()},
        "words": {name: list(text) for name, text in _WORDS.items()},
        "marks": MARKS,
        "numbers": numbers.packed(),
    }


def _packed(row: ModuleRow, trends: Trends) -> list[Any]:
    last = row.farthest if trends.differences else row.first_bad
    return [row.label, row.node, *map(_figure, (row.output, row.gradient, row.update, last))]


def _figure(value: float | None) -> float | str | None:
    if value is None or value != value:
        return None
    return float(f"{value:.6g}") if abs(value) != float("inf") else str(value)


def _series(
    trends: Trends, numbers: _Numbers, *, is_whole: bool, places: dict[tuple[str, str], int]
) -> Iterable[list[Any]]:
    """Each: row, module, tensor, the curves of each run, the difference, the steps that stand out."""
    union: dict[tuple[str, str, str, str], tuple[Series, list[int | None]]] = {}
    for side, run in enumerate(trends.runs):
        thinned = run.whole if is_whole else run.modules
        for place, number in enumerate(thinned.columns.tolist()):
            series = run.series[number]
            if words.known(series):
                union.setdefault(series.key, (series, [None] * len(trends.runs)))[1][side] = place
    apart = _differences(trends, is_whole)
    for key, (series, columns) in union.items():
        curves = [
            None
            if column is None
            else _curves(run.whole if is_whole else run.modules, column, numbers, is_whole)
            for run, column in zip(trends.runs, columns, strict=True)
        ]
        difference = numbers.put(apart[key]) if key in apart else None
        ranks = _of_ranks(trends, series, numbers) if is_whole else []
        events = _events(trends, series) if is_whole else []
        module = places.get((series.model, series.module), -1)
        name = "" if series.name in ("value", "all") else one_line(series.name)
        yield [series.row, module, _label(series) if is_whole else name, curves, difference, ranks, events]


def _label(series: Series) -> str:
    """Which group of which optimizer; nothing of what is there once."""
    return one_line(" ".join(filter(None, (series.model, series.module))))


def _differences(trends: Trends, is_whole: bool) -> dict[tuple[str, str, str, str], Array]:
    found = trends.differences
    if found is None:
        return {}
    run = trends.runs[0]
    columns = (run.whole if is_whole else run.modules).columns
    numbers = [number for number in found.mine.tolist() if number in set(columns.tolist())]
    values = found.whole if is_whole else found.modules
    return {run.series[number].key: _rounded(values[:, at], is_whole) for at, number in enumerate(numbers)}


def _curves(thinned: Thinned, column: int, numbers: _Numbers, is_whole: bool) -> list[Any]:
    made: list[Any] = []
    made_of = _rounded(thinned.low[:, column], is_whole)
    for name in _FIELDS:
        values = _rounded(getattr(thinned, name)[:, column], is_whole)
        is_twice = name in ("high", "middle") and np.array_equal(values, made_of, equal_nan=True)
        made.append(made[0] if is_twice else numbers.put(values))
    return made


def _rounded(values: Array, is_whole: bool) -> Array:
    plain = np.ascontiguousarray(values, np.float32)
    return plain if is_whole else (plain.view(np.uint32) & _DIGITS_OF_MODULES).view(np.float32)


def _of_ranks(trends: Trends, series: Series, numbers: _Numbers) -> list[Any]:
    """Of each run that has several ranks: names, and the smallest and largest of all of them."""
    made: list[Any] = []
    for ranks in trends.ranks:
        every: list[tuple[Array, Array]] = []
        for run in ranks:
            at = next(
                (at for at, number in enumerate(run.whole.columns) if run.series[number].key == series.key),
                None,
            )
            if at is not None:
                every.append((run.whole.low[:, at], run.whole.high[:, at]))
        if len(every) < 2 or series.row not in (rows.LOSS, rows.GRADIENT_NORM, rows.SECONDS):
            made.append(None)
            continue
        names = [list(name.format(count=len(every))) for name in (words.LEAST_OF_RANKS, words.MOST_OF_RANKS)]
        least = np.fmin.reduce([low for low, _ in every])
        most = np.fmax.reduce([high for _, high in every])
        made.append([names, numbers.put(least), numbers.put(most)])
    return made


def _events(trends: Trends, series: Series) -> list[list[Any]]:
    if series.row not in (rows.LOSS, rows.GRADIENT_NORM):
        return []
    spikes = sorted({step for run in trends.runs for step in run.spikes(series.row)})
    first = sorted({int(run.first_bad[run.bad[0]]) for run in trends.runs if run.bad})
    return [[step, kind] for kind, steps in (("spike", spikes), ("first", first)) for step in steps]
