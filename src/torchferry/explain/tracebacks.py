"""Gathers Python's tracebacks line by line, one for each process that writes into the log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torchferry.explain.model import Frame

HEAD = "Traceback (most recent call last)"
LONGEST = 2000  # lines of one traceback: endless recursion is cut by Python, a broken log is not
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+)(?:, in (?P<function>.*))?')
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:\[.*\])?(?::.*)?$")
_GROUP = re.compile(r"^ *[|+]-*\+?(?: |$)")  # how exception groups are drawn
_LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|^<")


@dataclass
class Traceback:
    """One traceback; its exception is "" as long as that has not come."""

    line: int
    indent: int
    frames: list[Frame] = field(default_factory=list)
    exception: str = ""
    length: int = 0

    def user_frame(self) -> Frame | None:
        """The innermost line that is no library's; the innermost of all if there is none."""
        own = [frame for frame in self.frames if not _LIBRARIES.search(frame.file)]
        return own[-1] if own else self.frames[-1] if self.frames else None


class Tracebacks:
    """The tracebacks of all processes that write into one log."""

    def __init__(self) -> None:
        self._open: dict[int | None, Traceback] = {}

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def is_open_for(self, rank: int | None) -> bool:
        return rank in self._open

    def feed(self, number: int, rank: int | None, text: str) -> Traceback | None:
        """Look at the next line of a process; answers the traceback that is complete with it."""
        text = _GROUP.sub("", text)
        stripped = text.strip()
        indent = len(text) - len(text.lstrip())
        if HEAD in stripped:
            self._open[rank] = Traceback(number, indent)
            return None
        current = self._open.get(rank)
        if current is None:
            return None
        current.length += 1
        frame = _FRAME.match(stripped)
        if frame:
            current.frames.append(Frame(frame["file"], int(frame["line"]), frame["function"] or ""))
            return None
        if current.length > LONGEST:
            del self._open[rank]
        if not stripped or indent > current.indent or not _EXCEPTION.match(stripped):
            return None
        del self._open[rank]
        current.exception = stripped
        return current
