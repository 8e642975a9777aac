"""Takes lines of a host log apart, by the forms that the vendor's data name."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchferry.logs.blocks import Progress, blocks_of_file
from torchferry.perf.oplog.model import Tensor
from torchferry.vendors.host import HostLog

_DIGITS = re.compile(r"\d+")
_SIZE = re.compile(r"-?\d{1,19}")  # longer ones are no sizes, and Python may refuse to read them
_CENTURY = 3.2e9  # seconds
_DIGITS_OF_INT = 19
_HEAD = 400  # bytes of a line in which its header stands
_SLACK = 8  # a cut line may be shorter than the limit by its end


class Header(NamedTuple):
    """Who wrote a line, and when, as the line has it; None: it does not say."""

    process: bytes | None
    thread: bytes | None
    time: bytes | None


_NO_HEADER = Header(None, None, None)


class Details(NamedTuple):
    """What stands behind an operator's type."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    attributes: str


class Forms:
    """The patterns of one vendor, compiled once."""

    def __init__(self, log: HostLog) -> None:
        self._log = log
        self._header = _with_groups(log.header, Header._fields)
        self._compile = re.compile(log.compile_line.encode())
        self._miss = re.compile(log.miss_line.encode()) if log.miss_line else None
        self._tensor = re.compile(log.tensor)
        self._attributes = re.compile(log.attributes) if log.attributes else None
        self._prefix = log.summary_prefix.encode()

    def header(self, line: bytes) -> Header:
        """Of a line."""
        found = self._header.search(line, 0, _HEAD)
        return _NO_HEADER if found is None else Header(*found.group(*Header._fields))

    def compiled(self, line: bytes) -> tuple[str, float | None] | None:
        """The type of the operator, and seconds if the line says that it is done; None: another sort of line."""
        found = self._compile.search(line)
        if found is None:
            return None
        milliseconds = found.groupdict().get("milliseconds")
        return decoded(found["type"]), None if milliseconds is None else _seconds(milliseconds)

    def missed(self, line: bytes) -> str | None:
        """The type of the operator that no compiled one was found for."""
        found = None if self._miss is None else self._miss.search(line)
        return None if found is None else decoded(found["type"])

    def is_cut(self, line: bytes) -> bool:
        """Whether the log had no room for all of the line."""
        limit = self._log.line_limit
        return bool(limit) and len(line) >= limit - _SLACK and not line.endswith(b"}")

    def is_summarized(self, line: bytes) -> bool:
        """Whether the summary of the vendor's guide counts it."""
        return line.startswith(self._prefix)

    def details(self, text: str) -> Details:
        """Tensors and attributes of a call."""
        sides: dict[str, list[Tensor]] = {"In": [], "Out": []}
        for found in self._tensor.finditer(text):
            sides[found["side"]].append(self._read_tensor(found.groupdict()))
        attributes = None if self._attributes is None else self._attributes.search(text)
        return Details(
            tuple(sides["In"]), tuple(sides["Out"]), attributes["attributes"].strip() if attributes else ""
        )

    def _read_tensor(self, groups: dict[str, str | None]) -> Tensor:
        form = groups.get("format") or ""
        storage = groups.get("storage") or form
        dtype = groups.get("dtype") or ""
        sizes = tuple(int(size) for size in _SIZE.findall(groups["shape"] or ""))
        formats = self._log.formats
        return Tensor(
            self._log.dtypes.get(dtype, dtype), formats.get(form, form), formats.get(storage, storage), sizes
        )


def _with_groups(pattern: str, names: Iterable[str]) -> re.Pattern[bytes]:
    """The pattern with all of these groups; one that it lacks matches nothing."""
    known = re.compile(pattern).groupindex
    return re.compile((pattern + "".join(f"(?P<{name}>)?" for name in names if name not in known)).encode())


def _seconds(milliseconds: bytes) -> float:
    try:
        seconds = float(milliseconds) / 1e3
    except ValueError:  # a torn number: that it is done is known all the same
        return 0.0
    return seconds if seconds < _CENTURY else 0.0


def number_of(text: bytes | None) -> int:
    """The number of a process; 0: not known."""
    return int(text) if text and len(text) < _DIGITS_OF_INT else 0


def decoded(text: bytes) -> str:
    """Bytes of a log; those that are no UTF-8 stay visible in reports."""
    return text.decode("utf-8", "surrogateescape")


def seconds_of(time: bytes | None) -> float | None:
    """A time as logs write it, 2024-05-06-10:11:12.345.678, as seconds; None if it is none."""
    parts = _DIGITS.findall((time or b"").decode("ascii", "replace"))
    if len(parts) < 3 or not all(part.strip("0") and len(part) <= 4 for part in parts[:3]):
        return None
    if any(len(part) > 2 for part in parts[3:6]):
        return None
    year, month, day, hour, minute, second = (int(part) for part in [*parts[:6], *"000"][:6])
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 60:
        return None
    fraction = "".join(parts[6:])
    whole = calendar.timegm((year, month, day, hour, minute, second))
    return whole + (float(f"0.{fraction}") if fraction else 0.0)


# Finds the lines that speak of operators in logs of any size: blocks of bytes, searched before
# anything is decoded.

LONGEST = 1 << 16  # a line beyond this is no log line but other bytes


class Hit(NamedTuple):
    """A line with one of the marks, without its end."""

    mark: int  # which one
    at: int  # where behind the mark's end the line goes on
    line: bytes


def hits(file: Path, marks: Sequence[bytes], progress: Progress | None = None) -> Iterator[Hit]:
    """The lines of a file that have one of the marks, in order. Raises OSError; a torn archive gives what it has."""
    rest = b""
    for block in blocks_of_file(file, progress):
        data = rest + block
        end = data.rfind(b"\n") + 1
        yield from _in_block(data, end, marks)
        rest = data[max(end, len(data) - LONGEST) :]
    yield from _in_block(rest, len(rest), marks)


def _in_block(data: bytes, end: int, marks: Sequence[bytes]) -> Iterator[Hit]:
    places = sorted(
        (place, number) for number, mark in enumerate(marks) for place in _places(data, end, mark)
    )
    for place, number in places:
        start = data.rfind(b"\n", 0, place) + 1
        stop = data.find(b"\n", place)
        line = data[start : end if stop < 0 else stop]
        if len(line) <= LONGEST:
            yield Hit(number, place - start + len(marks[number]), line.rstrip(b"\r"))


def _places(data: bytes, end: int, mark: bytes) -> Iterator[int]:
    place = data.find(mark, 0, end)
    while place >= 0:
        yield place
        place = data.find(mark, place + len(mark), end)
