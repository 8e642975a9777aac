"""The page's curves: loss and gradient norm of both sides over the steps, drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchferry.accuracy.compare.model import Comparison, Curve
from torchferry.accuracy.report import sentences, words
from torchferry.report.markup import both, escaped, row, table
from torchferry.text import Text

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 560, 220, 64, 24, 8
_MAX_ROWS = 500  # of the table of values
Points = Sequence["float | None"]


def curves_section(comparisons: Sequence[Comparison]) -> str:
    """The section; nothing if no record has several steps."""
    drawn = [
        _figure(curve, sentences.label(comparison, comparisons))
        for comparison in comparisons
        for curve in comparison.curves
    ]
    if not drawn:
        return ""
    return f'<section id="curves"><h2>{both(words.CURVES)}</h2><div class="figures">{"".join(drawn)}</div></section>'


def _figure(curve: Curve, label: Text | None) -> str:
    name = words.CURVE.get(curve.name, Text(curve.name, curve.name))
    title = Text(f"{label.en}: {name.en}", f"{label.zh}：{name.zh}") if label else name
    legend = f'<span class="key mine">{both(words.MINE)}</span> <span class="key golden">{both(words.GOLDEN)}</span>'
    rows = [
        row([str(step), sentences.number(mine), sentences.number(golden)])
        for step, mine, golden in zip(curve.steps, curve.mine, curve.golden, strict=True)
    ]
    values = table([words.STEP, words.MINE, words.GOLDEN], rows[:_MAX_ROWS], "rules values")
    return (
        f"<figure><figcaption>{both(title, 'b')} {legend}</figcaption>{_drawn(curve)}"
        f"<details><summary>{both(words.VALUE)}</summary>{values}</details></figure>"
    )


def _drawn(curve: Curve) -> str:
    """Two lines in one frame; steps without a finite value leave a gap."""
    known = [each for each in (*curve.mine, *curve.golden) if each is not None and math.isfinite(each)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if low == high:
        low, high = low - 1.0, high + 1.0
    first, last = curve.steps[0], curve.steps[-1]

    def place(step: int, value: float) -> str:
        x = _LEFT + (_WIDTH - _LEFT - 8) * (step - first) / (last - first)
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)
        return f"{x:.1f},{y:.1f}"

    lines = "".join(
        f'<polyline class="{kind}" points="{" ".join(place(*point) for point in part)}"/>'
        for kind, values in (("golden", curve.golden), ("mine", curve.mine))
        for part in _parts(curve.steps, values)
    )
    base = _HEIGHT - _BOTTOM
    labels = (
        f'<text x="{_LEFT - 6}" y="{_TOP + 10}" class="end">{escaped(sentences.number(high))}</text>'
        f'<text x="{_LEFT - 6}" y="{base}" class="end">{escaped(sentences.number(low))}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{first}</text>'
        f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 6}" class="end">{last}</text>'
    )
    return (
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escaped(curve.name)}">'
        f'<path class="axis" d="M{_LEFT} {_TOP}V{base}H{_WIDTH - 8}"/>{labels}{lines}</svg>'
    )


def _parts(steps: Sequence[int], values: Points) -> list[list[tuple[int, float]]]:
    """Runs of finite values; one alone is a short stroke."""
    parts: list[list[tuple[int, float]]] = [[]]
    for step, value in zip(steps, values, strict=True):
        if value is None or not math.isfinite(value):
            parts.append([])
        else:
            parts[-1].append((step, value))
    return [part * 2 if len(part) == 1 else part for part in parts if part]
