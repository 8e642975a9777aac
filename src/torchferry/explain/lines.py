"""What stands before a line's own text: colours, the rank that wrote it, the time."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

_COLOURS = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")
# [rank3]: of PyTorch, [default3]: of torchrun, [1,3]<stderr>: of MPI
_RANK = re.compile(r"\[(?:rank|default|\d+,)(\d{1,6})\](?:<std\w+>)?: ?")
_RANK_IN_NAME = re.compile(
    r"(?:^|[/_.-])(?:rank|worker|process|proc|gpu|npu|mlu|sdaa|local_rank)[_.-]?(\d{1,6})(?=[/_.-]|$)", re.I
)
_TORCHRUN_FOLDER = re.compile(r"attempt_\d+/(\d+)/std(?:err|out)\.log")

_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<milli>\d{1,9})(?:\.(?P<micro>\d{3}))?)?"
_MOMENTS = (
    re.compile(rf"(?P<year>20\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)[-T ]{_CLOCK}"),
    re.compile(rf"(?:^|\[)[EWIFC](?P<month>\d{{1,2}})(?P<day>\d\d) {_CLOCK}"),  # glog, and PyTorch's C++ part
)


class Line(NamedTuple):
    """A line, taken apart."""

    rank: int | None
    text: str


def clean(line: bytes) -> Line:
    """The text without colours and without the rank before it; bytes that are no UTF-8 are written out."""
    plain = _COLOURS.sub(b"", line) if b"\x1b" in line else line
    text = plain.decode("utf-8", "backslashreplace").rstrip()
    match = _RANK.match(text)
    return Line(int(match[1]), text[match.end() :]) if match else Line(None, text)


def rank_in_name(path: str) -> int | None:
    """The rank that a log's path names."""
    match = _TORCHRUN_FOLDER.search(path) or _RANK_IN_NAME.search(path)
    return int(match[1]) if match else None


def moment(text: str, year: int) -> float | None:
    """The time that a line bears, in seconds; `year` is for the forms that leave it out."""
    for form in _MOMENTS:
        match = form.search(text)
        if match:
            return _seconds(match.groupdict(), year)
    return None


def _seconds(parts: dict[str, str | None], year: int) -> float | None:
    whole = {name: int(parts[name] or 0) for name in ("month", "day", "hour", "minute", "second")}
    fraction = float(f"0.{parts['milli'] or 0}{parts['micro'] or ''}")
    try:
        return datetime(int(parts.get("year") or year), **whole).timestamp() + fraction  # type: ignore[arg-type]
    except ValueError:  # digits that are no time
        return None
