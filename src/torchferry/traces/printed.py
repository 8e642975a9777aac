"""Tables of operators as `key_averages().table()` prints them: rows with their heads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchferry.traces.opening import TraceText

_RULE = re.compile(r"\s*-{3,}(?:\s+-{3,})+\s*$")
NAME = "Name"
_CALLS = ("# of Calls", "Number of Calls")
_HOST_TIME = ("Self CPU", "Self CPU total", "Self CPU time total")
_DEVICE_TIME = re.compile(r"Self (?!CPU\b)(\w+)(?: total| time total)?$")
_TIME = re.compile(r"([\d.]+)(us|ms|s)$")
_UNITS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_MOST_LINE = 100_000  # characters; such a line is no table's

Row = Mapping[str, str]


def table_lines(text: TraceText) -> Iterator[str]:
    """Of whole lines; what is too long for one is dropped."""
    rest = ""
    while piece := text.more():
        *whole, rest = (rest + piece).split("\n")
        yield from whole
        if len(rest) > _MOST_LINE:
            rest = ""
    yield rest


def table_rows(lines: Iterator[str]) -> Iterator[Row]:
    """A rule, the heads, a rule, the rows, a rule: the rules tell the columns."""
    columns: list[tuple[int, int]] = []
    heads: list[str] = []
    for line in (line.rstrip("\r") for line in lines):
        if _RULE.match(line):
            if heads:
                columns, heads = [], []  # the last rule
            else:
                columns = [found.span() for found in re.finditer(r"-+", line)]
        elif columns and not heads:
            heads = [_head(cell) for cell in _cells(line, columns)]
            if NAME not in heads or "calls" not in heads:
                columns, heads = [], []
            else:
                next(lines, "")  # the rule below the heads
        elif heads:
            row = dict(zip(heads, _cells(line, columns), strict=True))
            if row[NAME] and row["calls"].isdecimal():
                yield row


def _cells(line: str, columns: list[tuple[int, int]]) -> list[str]:
    """By the gaps between them: old tables have heads that are wider than their columns. Else by the columns."""
    cells = re.split(r"\s{2,}", line.strip())
    return cells if len(cells) == len(columns) else [line[begin:end].strip() for begin, end in columns]


def _head(text: str) -> str:
    """The same word for a column in the tables of all years."""
    if text in _CALLS:
        return "calls"
    if text in _HOST_TIME:
        return "host time"
    found = _DEVICE_TIME.match(text)
    return found[1].lower() if found else text


def table_device(row: Row) -> str:
    """The device whose time the table has, if it worked at all."""
    return next((head for head in row if head.islower() and head not in ("calls", "host time")), "")


def printed_nanoseconds(text: str) -> int:
    """1.500ms is 1500000; 0 for what is no time."""
    found = _TIME.match(text)
    return round(float(found[1]) * _UNITS[found[2]]) if found else 0
