"""Charts as SVG: curves with marks of their own, so that curves that coincide can be told apart.

What is drawn here is seen without scripts and in print; plots.js draws the same chart anew in the width that it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torchferry import units
from torchferry.report.html import both, data_for_script, escaped, quiet
from torchferry.report.safe import both_on_one_line
from torchferry.text import Text
from torchferry.units import number

WIDTH = 640
HEIGHTS = ((3, 130), (12, 160), (60, 190))  # at most so many points -> height
HEIGHT = 220  # of more points
LEFT, RIGHT, TOP, BOTTOM = 70, 26, 14, 30
MAX_MARKS = 24
TICKS = 4  # of the values, about
_USUAL_DIGITS = 7
_ALL_DIGITS = 16
STYLES = 6  # classes s0 to s5
_LIMIT = 1e300  # so that no difference of two values overflows
_LOGARITHMIC_FROM = 1000.0
MAX_GROUPS = 300
Points = Mapping[float, float]  # step -> value; of several values in a step, the earlier ones lie before it
STEP = Text("step", "步")
_POINTED_AT = Text("Step", "步骤")
_NOT_FINITE = Text("A cross at the upper edge: not a finite number.", "上边缘的叉号：非有限数。")
_NO_FINITE = Text("no finite value", "没有有限值")
_THINNED = Text(
    "{all} values; drawn are the smallest and the largest of each group of {group}.",
    "共 {all} 个值；图中为每 {group} 个值中的最小值和最大值。",
)
_LOGARITHMIC = Text("logarithmic scale", "对数坐标")
_DIFFERENCE = Text("Difference to {name}", "与{name}的差")
_EQUAL = Text("No difference at any step: {names}.", "每一步都没有差异：{names}。")
AUTOMATIC, ALWAYS_LOGARITHMIC = "automatic", "logarithmic"


@dataclass(frozen=True)
class Chart:
    """Curves over common steps."""

    title: Text
    names: tuple[Text, ...]
    steps: tuple[float, ...]
    values: tuple[tuple[float | None, ...], ...]  # for each name, for each step
    total: int  # values of the longest curve before thinning
    group: int  # of so many values, the smallest and the largest are here; 1: all are
    scale: str = AUTOMATIC
    across: Text = STEP  # what the steps are
    kinds: tuple[str, str] = (
        "count",
        "number",
    )  # how steps and values are written: count, number, size or time
    styles: tuple[
        int, ...
    ] = ()  # of its curves; none: each the next, the first of which lets what lies above it show
    notes: tuple[Text, ...] = ()

    def style(self, place: int) -> int:
        """The style of a curve."""
        return (self.styles[place] if self.styles else place) % STYLES

    @property
    def height(self) -> int:
        """As high as it has something to show."""
        return next((height for most, height in HEIGHTS if len(self.steps) <= most), HEIGHT)


def chart_of(title: Text, names: tuple[Text, ...], curves: Sequence[Points]) -> Chart:
    """The curves over all steps that any of them has, thinned where there are many."""
    steps = sorted({step for points in curves for step in points})
    group = math.ceil(len(steps) / MAX_GROUPS) if len(steps) > 2 * MAX_GROUPS else 1
    kept = steps if group == 1 else sorted(_kept(steps, curves, group))
    return Chart(
        title=title,
        names=names,
        steps=tuple(kept),
        values=tuple(tuple(points.get(step) for step in kept) for points in curves),
        total=len(steps),
        group=group,
    )


def _kept(steps: Sequence[float], curves: Iterable[Points], group: int) -> set[float]:
    """Of each group and each curve the smallest and the largest value, the first that is not finite; both ends."""
    kept = {steps[0], steps[-1]}
    for points in curves:
        for start in range(0, len(steps), group):
            here = [step for step in steps[start : start + group] if step in points]
            finite = [step for step in here if math.isfinite(points[step])]
            if finite:
                kept |= {min(finite, key=points.__getitem__), max(finite, key=points.__getitem__)}
            kept |= set([step for step in here if not math.isfinite(points[step])][:1])
    return kept


def difference_of(chart: Chart) -> Chart | None:
    """How far each curve is from the first one, on a logarithmic axis; None if there is no other one, or all are equal."""
    reference, *others = chart.values
    apart = [
        tuple(
            None if one is None or other is None or not math.isfinite(one - other) else abs(one - other)
            for one, other in zip(values, reference, strict=True)
        )
        for values in others
    ]
    differ = [place for place, values in enumerate(apart) if any(values)]
    if not differ:
        return None
    whole = [place for place, values in enumerate(apart) if place not in differ and None not in values]
    equal = [chart.names[place + 1] for place in whole]
    names = Text(", ".join(name.en for name in equal), "、".join(name.zh for name in equal))
    return replace(
        chart,
        title=_DIFFERENCE.format(name=chart.names[0]),
        names=tuple(chart.names[place + 1] for place in differ),
        values=tuple(apart[place] for place in differ),
        scale=ALWAYS_LOGARITHMIC,
        styles=tuple(chart.style(place + 1) for place in differ),
        notes=(_EQUAL.format(names=names),) if equal else (),
    )


def figure(chart: Chart, heading: str = "h3", below: str = "") -> str:
    """The picture with its title and legend; plots.js adds what is pointed at, and a closer look."""
    notes = list(chart.notes)
    if chart.group > 1:
        notes.append(_THINNED.format(all=f"{chart.total:,}", group=chart.group))
    up = y_axis(chart)
    if up and up.logarithmic:
        notes.append(_LOGARITHMIC)
    if any(value is not None and not math.isfinite(value) for curve in chart.values for value in curve):
        notes.append(_NOT_FINITE)
    signs = "".join(
        f"<li>{legend_sign(chart.style(place))}{both(name)}</li>" for place, name in enumerate(chart.names)
    )
    return (
        f"<figure><figcaption><{heading}>{both(chart.title)}</{heading}>"
        f'<ul class="signs">{signs}</ul></figcaption>'
        f'<div class="drawing">{draw(chart)}</div>{"".join(map(quiet, notes))}'
        f"{below}{data_for_script(_data(chart))}</figure>"
    )


def figures(charts: Iterable[Chart]) -> str:
    """Charts beside each other where there is room."""
    drawn = "".join(map(figure, charts))
    return f'<div class="figures">{drawn}</div>' if drawn else ""


def _data(chart: Chart) -> dict[str, Any]:
    """What the script draws."""
    return {
        "title": both_on_one_line(chart.title),
        "names": list(map(both_on_one_line, chart.names)),
        "steps": chart.steps,
        "values": [[_plain(value) for value in curve] for curve in chart.values],
        "scale": chart.scale,
        "height": chart.height,
        "across": chart.across,
        "kinds": chart.kinds,
        "styles": chart.styles,
        "said": _POINTED_AT if chart.across is STEP else chart.across,
        "marks": MARKS,
    }


def _plain(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else number(value)


_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "number": number,
    "size": units.size,
    "time": units.duration,
}  # plots.js does the same


@dataclass(frozen=True)
class Axis:
    """A scale: how values become positions."""

    low: float
    high: float
    logarithmic: bool
    start: float
    end: float
    kind: str = "number"

    def position(self, value: float) -> float:
        """In the units of the picture."""
        value = max(-_LIMIT, min(_LIMIT, value))
        share = (self._measure(value) - self._measure(self.low)) / (
            self._measure(self.high) - self._measure(self.low)
        )
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int) -> list[float]:
        """Round numbers between the ends."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            if last - first < 1:  # one power of ten tells nothing of how far it is to the next
                few = [factor * 10.0**power for power in range(first - 1, last + 2) for factor in (1, 2, 5)]
                return [value for value in few if self.low <= value <= self.high]
            return [10.0**power for power in range(first, last + 1, max(1, (last - first) // about + 1))]
        unit = self._unit
        step = _round_step((self.high - self.low) / about / unit) * unit
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [place * step for place in range(first, last + 1)]

    @property
    def _unit(self) -> float:
        """Sizes are round in their own unit: 512 MiB, not 488.3 MiB."""
        if self.kind != "size" or self.high < 1:
            return 1.0
        return 1024.0 ** math.floor(math.log(self.high, 1024) + 1e-9)

    def label(self, value: float) -> str:
        """A tick in as many digits as tell it from its neighbours, and none that come from adding up steps."""
        if self.logarithmic or self.kind != "number":
            return _WRITTEN[self.kind](value)
        step = _round_step((self.high - self.low) / TICKS)
        largest = max(abs(self.low), abs(self.high))
        digits = max(1, math.ceil(math.log10(largest / step)) + 1) if largest > step else 1
        value = float(f"{value:.{max(digits, _USUAL_DIGITS)}g}")  # 0.30000000000000004 is 0.3
        return number(value) if digits <= _USUAL_DIGITS else f"{value:.{min(digits, _ALL_DIGITS)}g}"

    def _measure(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def x_axis(chart: Chart) -> Axis:
    """The axis of steps."""
    low, high = chart.steps[0], chart.steps[-1]
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Axis(low, high, False, LEFT, WIDTH - RIGHT, chart.kinds[0])


def y_axis(chart: Chart) -> Axis | None:
    """Over the finite values; None if there are none."""
    finite = [
        value for curve in chart.values for value in curve if value is not None and math.isfinite(value)
    ]
    if not finite:
        return None
    low, high = max(-_LIMIT, min(finite)), min(_LIMIT, max(finite))
    bottom, kind = chart.height - BOTTOM, chart.kinds[1]
    if chart.scale == ALWAYS_LOGARITHMIC and high > 0:
        least = min(value for value in finite if value > 0)
        room = 2.0 if least == high else (high / least) ** 0.04
        return Axis(least / room, high * room, True, bottom, TOP, kind)
    if low > 0 and high / low >= _LOGARITHMIC_FROM:
        return Axis(low, high, True, bottom, TOP, kind)
    if kind != "number":  # an amount: from nothing on
        return Axis(0.0, high * 1.05 or 1.0, False, bottom, TOP, kind)
    margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return Axis(low - margin, high + margin, False, bottom, TOP, kind)


def draw(chart: Chart) -> str:
    """The SVG of a chart."""
    across, up = x_axis(chart), y_axis(chart)
    height = chart.height
    parts = [f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img">']
    parts.append(f"<title>{escaped(chart.title.en)}</title>")
    parts += _frame(chart, across, up)
    if up is None:
        middle = f'x="{WIDTH / 2:.0f}" y="{height / 2:.0f}" text-anchor="middle"'
        parts.append(both(_NO_FINITE, f"text {middle}"))
    for place in range(len(chart.values)):
        parts += _curve(chart, place, across, up)
    parts.append("</svg>")
    return "".join(parts)


def legend_sign(place: int) -> str:
    """The line and the mark of a curve."""
    line = '<path class="curve" d="M1 9H41"/>'
    return (
        f'<svg class="sign s{place % STYLES}" viewBox="0 0 42 18" width="42" height="18" aria-hidden="true">'
        f'{line}<path class="mark" d="{_drawn(MARKS[place % STYLES], 21, 9)}"/></svg>'
    )


def _frame(chart: Chart, across: Axis, up: Axis | None) -> Iterator[str]:
    bottom, right = chart.height - BOTTOM, WIDTH - RIGHT
    for step in across.ticks(8):
        if across.kind == "count" and step != int(step):
            continue
        x = across.position(step)
        yield f'<text x="{x:.1f}" y="{chart.height - 10}" text-anchor="middle">{escaped(across.label(step))}</text>'
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
    for value in up.ticks(TICKS) if up else ():
        y = up.position(value) if up else 0
        label = escaped(up.label(value)) if up else ""
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield both(chart.across, f'text class="across" x="{LEFT - 8}" y="{chart.height - 10}" text-anchor="end"')


def _curve(chart: Chart, place: int, across: Axis, up: Axis | None) -> Iterator[str]:
    values = chart.values[place]
    positions = [
        (across.position(step), up.position(value))
        if up and value is not None and math.isfinite(value) and not (up.logarithmic and value <= 0)
        else None
        for step, value in zip(chart.steps, values, strict=True)
    ]
    path, pen = "", "M"
    for position, value in zip(positions, values, strict=True):
        if position:
            path += f"{pen}{position[0]:.1f} {position[1]:.1f}"
            pen = "L"
        elif value is not None:  # not finite: the line is broken; a missing value is passed over
            pen = "M"
    style = chart.style(place)
    yield f'<g class="s{style}"><path class="curve" d="{path}"/>'
    present = [at for at, position in enumerate(positions) if position]
    every = max(1, math.ceil(len(present) / MAX_MARKS))
    shift = (place * every) // max(1, len(chart.values))  # so that the marks of equal curves take turns
    for at in present[shift::every]:
        yield _mark(chart, place, at, _drawn(MARKS[style], *(positions[at] or (0, 0))), "mark")
    for at, value in enumerate(values):
        if value is not None and not math.isfinite(value):
            yield _mark(
                chart, place, at, _drawn(_CROSS, across.position(chart.steps[at]), TOP + 4), "mark bad"
            )
    yield "</g>"


def _mark(chart: Chart, place: int, at: int, path: str, kind: str) -> str:
    value = chart.values[place][at]
    step = chart.steps[at]
    where = step_label(step) if chart.kinds[0] == "count" else _WRITTEN[chart.kinds[0]](step)
    said = (
        f"{chart.names[place].en}, {where}: {_WRITTEN[chart.kinds[1]](math.nan if value is None else value)}"
    )
    return f'<path class="{kind}" d="{path}"><title>{escaped(said)}</title></path>'


def step_label(step: float) -> str:
    """Of several losses in a step, the earlier ones lie before it."""
    return f"{step:.0f}" if step == int(step) else f"{math.ceil(step)} ({step:.2f})"


# The mark of each curve, and the cross of a value that is not finite: its path, from a point to the left and above it.
_CROSS = (4, 4, "l8 8m0 -8l-8 8")
MARKS = (
    (6, 0, "a6 6 0 1 0 12 0a6 6 0 1 0 -12 0"),  # a circle
    _CROSS,
    (3, 3, "h6v6h-6z"),  # a square
    (0, 5, "v10m-5 -5h10"),  # a plus
    (0, 5, "l4.5 8h-9z"),  # a triangle
    (0, 4, "l4 4l-4 4l-4 -4z"),  # a diamond
)


def _drawn(mark: tuple[int, int, str], x: float, y: float) -> str:
    left, above, path = mark
    return f"M{x - left:.1f} {y - above:.1f}{path}"


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)


def round_up(value: float) -> float:
    """The next round number, of which a quarter is round, too."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        power * factor for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if power * factor >= value
    )
