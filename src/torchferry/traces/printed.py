"""Tables of operators as `key_averages().table()` prints them: the text of their file, rows with their heads."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from torchferry.errors import InputError, not_readable
from torchferry.text import Text
from torchferry.traces.chunks import EMPTY_FILE, encoding, no_trace, unpacked

_RULE = re.compile(r"\s*-{3,}(?:\s+-{3,})+\s*$")
NAME = "Name"
_CALLS = ("# of Calls", "Number of Calls")
_HOST_TIME = ("Self CPU", "Self CPU total", "Self CPU time total")
_DEVICE_TIME = re.compile(r"Self (?!CPU\b)(\w+)(?: total| time total)?$")
_TIME = re.compile(r"([\d.]+)(us|ms|s)$")
_UNITS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_PIECE = 1 << 20  # bytes
_MOST_LINE = 100_000  # characters; such a line is no table's

Row = Mapping[str, str]


def text_pieces(path: Path) -> Iterator[str]:
    """The text of a file, unpacked and decoded piece by piece; raises if it is no text."""
    if path.is_dir():
        raise InputError(
            Text(
                f"{str(path)!r} is a folder; name the trace file in it",
                f"{str(path)!r} 是文件夹；请给出其中的 trace 文件",
            )
        )
    decoder: codecs.IncrementalDecoder | None = None
    try:
        with path.open("rb") as file:
            source = unpacked(file)
            while piece := source.read(_PIECE):
                decoder = decoder or codecs.getincrementaldecoder(encoding(path, piece))("replace")
                if text := decoder.decode(piece):
                    yield text
    except OSError as error:
        raise not_readable(repr(str(path)), error) from error
    if decoder is None:
        raise no_trace(path, EMPTY_FILE)


def table_lines(pieces: Iterable[str]) -> Iterator[str]:
    """The whole lines of a text; what is too long for one is dropped."""
    rest = ""
    for piece in pieces:
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
    """The cells of a line by the gaps between them, as old tables have heads wider than their columns; else by the columns."""
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
