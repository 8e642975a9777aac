"""Draws the loss curves of both runs into one picture that a README can show."""

from __future__ import annotations

import math
from collections.abc import Iterable

from torchferry.report.markup import escaped
from torchferry.zoo.evidence.model import Curve

NAME = "loss.svg"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 720, 360, 60, 30, 30, 15
_COLOURS = ("#888888", "#c03030")
_MOST_POINTS = 600
_TICKS = 5


def draw(original: Curve, port: Curve, names: tuple[str, str]) -> str:
    """An SVG of its own; "" where there is nothing to draw."""
    curves = [_thinned(curve.values) for curve in (original, port)]
    values = [value for curve in curves for _, value in curve]
    if not values:
        return ""
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin
    last = max(max((step for step, _ in curve), default=1) for curve in curves) or 1

    def across(step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last

    def down(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for tick in range(_TICKS):
        value, step = low + (high - low) * tick / (_TICKS - 1), last * tick / (_TICKS - 1)
        parts.append(
            f'<path d="M{_LEFT} {down(value):.1f}H{_WIDTH - _RIGHT}" stroke="#dddddd"/>'
            f'<text x="{_LEFT - 6}" y="{down(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
            f'<text x="{across(step):.1f}" y="{_HEIGHT - 10}" text-anchor="middle">{step:.0f}</text>'
        )
    for place, (curve, name, colour) in enumerate(zip(curves, names, _COLOURS, strict=True)):
        points = " ".join(f"{across(step):.1f},{down(value):.1f}" for step, value in curve)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{_LEFT + 140 * place}" y="18" fill="{colour}">{escaped(name)}</text>')
    return "".join(parts) + "</svg>\n"


def _thinned(values: Iterable[float]) -> list[tuple[int, float]]:
    """At most as many points as can be told apart; what is no number can't be drawn."""
    known = [(step, value) for step, value in enumerate(values) if math.isfinite(value)]
    every = max(1, math.ceil(len(known) / _MOST_POINTS))
    return known[::every]
