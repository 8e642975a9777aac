"""Gathers Python's tracebacks line by line, one for each process that writes into the log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torchferry.explain.lines import without_logger
from torchferry.explain.model import Frame

HEAD = "Traceback (most recent call last)"
LONGEST = 2000  # lines of one traceback: endless recursion is cut by Python, a broken log is not
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+)(?:, in (?P<function>.*))?')
_DRAWN_FRAME = re.compile(r"│ (?P<file>[^│]+?):(?P<line>\d+) in (?P<function>\S+)")  # by rich
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*(?:[A-Z_]\w*|\w*error|timeout)(?:\[.*\])?(?::.*)?$")
_GROUP = re.compile(r"^ *[|+]-*\+?(?: |$)")  # how exception groups are drawn
_LIBRARIES = re.compile(r"(?:^|[/\\])(?:site|dist)-packages[/\\]|(?:^|[/\\])lib(?:64)?[/\\]python\d|^<")

_FOREIGN = 30  # lines of others between those of a traceback; with more, its end was never written

Process = int | str | None  # the rank, the name that its lines bear, or the log's only one


@dataclass
class Traceback:
    """One traceback; its exception is "" as long as that has not come."""

    line: int
    indent: int
    frames: list[Frame] = field(default_factory=list)
    exception: str = ""
    length: int = 0
    foreign: int = 0  # lines in between that belong to none

    @property
    def files(self) -> tuple[str, ...]:
        """Those that the exception went through."""
        return tuple(frame.file for frame in self.frames)

    def user_frame(self) -> Frame | None:
        """The innermost line that is no library's; the innermost of all if there is none."""
        own = [frame for frame in self.frames if not frame.is_library]
        return own[-1] if own else self.frames[-1] if self.frames else None


class Tracebacks:
    """The tracebacks of all processes that write into one log."""

    def __init__(self) -> None:
        self._open: dict[Process, Traceback] = {}

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def is_open_for(self, process: Process) -> bool:
        return process in self._open

    def unfinished(self) -> dict[Process, Traceback]:
        """Those whose end was not written."""
        return {process: traceback for process, traceback in self._open.items() if traceback.frames}

    def feed(self, number: int, process: Process, text: str) -> Traceback | None:
        """Look at the next line of a process; answers the traceback that is complete with it."""
        text = _GROUP.sub("", without_logger(text))
        stripped = text.strip()
        indent = len(text) - len(text.lstrip())
        if HEAD in stripped:
            self._open[process] = Traceback(number, indent)
            return None
        current = self._open.get(process)
        if current is None:
            return None
        current.length += 1
        frame = _FRAME.match(stripped) or _DRAWN_FRAME.match(stripped)
        if frame:
            current.frames.append(_frame(frame))
            return None
        is_end = bool(stripped) and indent <= current.indent and _EXCEPTION.match(stripped) is not None
        if not is_end:
            current.foreign += bool(stripped) and indent <= current.indent
            if current.length > LONGEST or current.foreign > _FOREIGN:
                del self._open[process]
            return None
        del self._open[process]
        current.exception = stripped
        return current


def _frame(found: re.Match[str]) -> Frame:
    file = found["file"]
    return Frame(file, int(found["line"]), found["function"] or "", _LIBRARIES.search(file) is not None)
