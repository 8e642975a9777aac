"""The figures that a README states: in its tables, and as the mean errors of a loss."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from torchferry.zoo.evidence.names import METRIC, canonical

DIFFERENCE, OFFSET = "difference", "mean absolute error"
ORIGINAL, PORT = "original", "migrated"
_NUMBER = re.compile(
    r"[\s*]*([-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))\s*(%?)[\s*]*(?:\w+/s)?[\s*]*"
)
_SPEEDS = r"(?:images?|imgs?|samples?|tokens?|sentences?|frames?|steps?)/s(?:ec)?"
_NAME = re.compile(rf"(?i)(?<![\w/])(?P<name>{METRIC}|{_SPEEDS}|(?:train[_. ])?loss)(?![\w])")
# What the title of a column, or the first field of a row, says of its figures.
_KINDS = {
    DIFFERENCE: re.compile(r"(?i)difference|差异|误差|\berror\b"),
    PORT: re.compile(r"(?i)\b(?:migrated|port(?:ed)?|ours?)\b|迁移|移植"),
    ORIGINAL: re.compile(r"(?i)\b(?:original|reference|golden|baseline|cuda|gpu)\b|原模型|原始|参考|基线"),
}
_RULER = re.compile(r"\|?[\s:|-]*--[\s:|-]*")
_MEAN_ERRORS = re.compile(
    r"Mean(?P<which>Relative|Absolute)Error\s*[:=]\s*(?P<value>[-+]?[\d.]+(?:[eE][-+]?\d+)?)"
)


class Figure(NamedTuple):
    """A number, and of what it is."""

    name: str  # acc1
    shown: str
    line: int
    value: float
    half_a_digit: float  # how far the true value may be from what is written
    kind: str = ""


def figures(text: str) -> Iterator[Figure]:
    """All of them; tables name a figure in the first cell of a row, or at the head of a column."""
    head: list[str] = []
    before: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        for found in _MEAN_ERRORS.finditer(line):
            kind = DIFFERENCE if found["which"] == "Relative" else OFFSET
            yield from _figure("loss", found["value"], number, kind)
        cells = _cells(line)
        if not cells:
            head = []
        elif _RULER.fullmatch(line.strip()):
            head = before
        elif head:
            yield from _of_row(head, cells, number)
        before = cells


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if "|" in line else []


def _of_row(head: list[str], cells: list[str], line: int) -> Iterator[Figure]:
    row = _NAME.search(cells[0])
    for title, cell in list(zip(head, cells, strict=False))[1 if row else 0 :]:
        named = row or _NAME.search(title)
        if named:
            kind = _kind(title) or ("" if row else _kind(cells[0]))
            yield from _figure(canonical(named["name"]), cell, line, kind)


def _kind(text: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), "")


def _figure(name: str, cell: str, line: int, kind: str) -> Iterator[Figure]:
    found = _NUMBER.fullmatch(cell)
    if not found:
        return
    try:
        written = Decimal(found[1].replace(",", ""))
    except InvalidOperation:
        return
    exponent = written.as_tuple().exponent
    half = 0.51 * 10.0**exponent if isinstance(exponent, int) else 0.0
    scale = 0.01 if found[2] and kind == DIFFERENCE else 1.0
    yield Figure(name, cell.strip(" *"), line, float(written) * scale, half * scale, kind)


def agrees(figure: Figure, value: float) -> bool:
    """Whether a value, rounded as the figure is, is the figure; a share may be written in percent."""
    if math.isnan(value) or math.isinf(value):
        return str(value) == str(figure.value)
    forms = [value] if figure.kind in (DIFFERENCE, OFFSET) else [value, value * 100, value / 100]
    return any(abs(form - figure.value) <= max(figure.half_a_digit, abs(form) * 1e-5) for form in forms)
