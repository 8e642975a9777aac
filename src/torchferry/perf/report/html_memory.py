"""The page's curves of memory, one for each device, drawn as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry import units
from torchferry.perf.model import Analysis, MemoryPoint
from torchferry.perf.report import words
from torchferry.report.markup import both, escaped
from torchferry.report.safe import one_line

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 220, 76, 24, 10
_NEAR = 4  # the limit is drawn where the curve comes within this factor of it


def memory_section(analysis: Analysis) -> str:
    """The section; nothing if memory was not recorded."""
    drawn = "".join(
        _figure(device, points, analysis.memory_limit if device != "cpu" else 0)
        for device, points in analysis.memory.items()
        if any(point.allocated for point in points)
    )
    return f'<section id="memory"><h2>{both(words.MEMORY)}</h2>{drawn}</section>' if drawn else ""


def _figure(device: str, points: Sequence[MemoryPoint], limit: int) -> str:
    peak = max(point.allocated for point in points)
    reserved = max(point.reserved for point in points)
    keys = f'<span class="key allocated">{both(words.ALLOCATED)}: {escaped(units.size(peak))}</span>'
    if reserved:
        keys += f' <span class="key reserved">{both(words.RESERVED)}: {escaped(units.size(reserved))}</span>'
    if limit:
        keys += f' <span class="key limit">{both(words.LIMIT)}: {escaped(units.size(limit))}</span>'
    return f"<figure><figcaption><b>{escaped(one_line(device))}</b> {keys}</figcaption>{_drawn(device, points, limit)}</figure>"


def _drawn(device: str, points: Sequence[MemoryPoint], limit: int) -> str:
    high = max(max(point.allocated, point.reserved) for point in points) or 1
    shows_limit = bool(limit) and limit <= _NEAR * high
    high = max(high, limit) if shows_limit else high
    first, last = points[0].start, max(points[-1].start, points[0].start + 1e-9)
    base = _HEIGHT - _BOTTOM

    def across(start: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 8) * (start - first) / (last - first)

    def up(value: int) -> float:
        return _TOP + (base - _TOP) * (1 - value / high)

    def line(kind: str, values: Sequence[int]) -> str:
        """Steps: memory stays what it is until the next event."""
        path = f"M{_LEFT} {up(values[0]):.1f}"
        for point, value in zip(points[1:], values[1:], strict=True):
            path += f"H{across(point.start):.1f}V{up(value):.1f}"
        return f'<path class="{kind}" d="{path}"/>'

    curves = line("allocated", [point.allocated for point in points])
    if any(point.reserved for point in points):
        curves = line("reserved", [point.reserved for point in points]) + curves
    if shows_limit:
        curves += f'<path class="limit" d="M{_LEFT} {up(limit):.1f}H{_WIDTH - 8}"/>'
    labels = (
        f'<text x="{_LEFT - 6}" y="{_TOP + 10}" class="end">{escaped(units.size(high))}</text>'
        f'<text x="{_LEFT - 6}" y="{base}" class="end">0</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{escaped(units.duration(first))}</text>'
        f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 6}" class="end">{escaped(units.duration(last))}</text>'
    )
    return (
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escaped(one_line(device))}">'
        f'<path class="axis" d="M{_LEFT} {_TOP}V{base}H{_WIDTH - 8}"/>{labels}{curves}</svg>'
    )
