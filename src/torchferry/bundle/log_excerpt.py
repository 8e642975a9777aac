"""The lines of logs around those that `ferry explain` finds to be decisive; logs may be of any size. Imports no torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from torchferry.bundle.model import LogExcerpt
from torchferry.errors import not_readable
from torchferry.explanation.explaining import Shown, explain_logs
from torchferry.explanation.lines import clean
from torchferry.explanation.model import Explanation, FoundMessage
from torchferry.explanation.report import cause_of, remedy_of
from torchferry.explanation.rules import RuleBook
from torchferry.logs import blocks_of_file, log_files
from torchferry.report.safe import one_line, shortened, visible
from torchferry.text import Text

_BEFORE, _AFTER = 60, 40  # lines
_TAIL = 100  # lines of a log in which no error was found
_LONGEST = 2000  # letters of a line
_LONGEST_BYTES = 1 << 16  # of a line that has no end
_MOST_LOGS = 4

_TEXT_LOG = Text("name a log in plain text", "请给出文本格式的日志")


def excerpt_of(paths: Sequence[Path], book: RuleBook, show: Shown | None = None) -> LogExcerpt:
    """Of one run: the cause, and the first failures of its other logs; the last lines if there is no error."""
    files, links = _own_files(paths)
    explanation = explain_logs(files, book, show)
    unread = {**links, **explanation.unread}
    if not explanation.logs:
        name, why = next(iter(unread.items()))
        raise not_readable(name, why, _TEXT_LOG)
    parts = [_around(explanation, finding) for finding in _decisive(explanation)]
    parts = parts or [_tail(explanation, number) for number in range(len(explanation.logs))[:_MOST_LOGS]]
    cause = explanation.cause
    said = () if cause is None or cause.pattern is None else (cause_of(cause), remedy_of(cause))
    return LogExcerpt("\n".join(parts), said, unread)


def _own_files(paths: Sequence[Path]) -> tuple[list[Path], dict[str, str]]:
    """The files that are meant; what a link in a folder leads to may be anything, and is left out."""
    files, unread = log_files(list(paths), "")
    links = [file for file in files if file.is_symlink() and file not in paths]
    unread |= {str(file): "a link" for file in links}
    left = [file for file in files if file not in links]
    if not left:
        name, why = next(iter(unread.items()))
        raise not_readable(name, why, _TEXT_LOG)
    return left, unread


def _decisive(explanation: Explanation) -> list[FoundMessage]:
    """The cause, then the first failures of other logs."""
    found = [explanation.cause] if explanation.cause is not None else []
    found += [failure.finding for failure in explanation.failures]
    once = {finding.source: finding for finding in reversed(found)}
    return sorted(once.values(), key=found.index)[:_MOST_LOGS]


def _around(explanation: Explanation, finding: FoundMessage) -> str:
    log = explanation.logs[finding.source]
    first = max(1, finding.line - _BEFORE)
    lines = _lines_of(Path(log.name), first)
    text = list(islice(lines, finding.line + _AFTER - first + 1))
    return _titled(log.name, first, text, log.lines, finding.line)


def _tail(explanation: Explanation, number: int) -> str:
    log = explanation.logs[number]
    text = list(deque(_lines_of(Path(log.name), max(1, log.lines - _TAIL)), _TAIL))
    return _titled(log.name, max(1, log.lines - len(text) + 1), text, log.lines)


def _titled(name: str, first: int, lines: Sequence[bytes], count: int, decisive: int = 0) -> str:
    head = f"--- {one_line(Path(name).name)}, lines {first} to {first + len(lines) - 1} of {count}"
    shown = (f"{'>' if at == decisive else ' '} {_shown(line)}" for at, line in enumerate(lines, first))
    return "\n".join([f"{head}, > is the decisive one" if decisive else head, *shown, ""])


def _shown(line: bytes) -> str:
    found = clean(line)
    return shortened(visible(found.stamp + found.text).replace("\t", "    "), _LONGEST)


def _lines_of(file: Path, first: int) -> Iterator[bytes]:
    """The lines from this one on; those before are only counted, and of one without an end only its beginning is kept."""
    number, rest = 1, b""
    with suppress(OSError):  # damaged further on: it was read up to there before
        for block in blocks_of_file(file):
            if number < first:
                skipped, block = _skipped(block, first - number)
                number += skipped
                if number < first:
                    continue
            *whole, rest = (rest + block).split(b"\n")
            yield from whole
            rest = rest[:_LONGEST_BYTES]
        if rest:
            yield rest


def _skipped(block: bytes, count: int) -> tuple[int, bytes]:
    """How many lines end in a block, up to so many, and what is behind them."""
    there = block.count(b"\n")
    if there < count:
        return there, b""
    at = -1
    for _ in range(count):
        at = block.index(b"\n", at + 1)
    return count, block[at + 1 :]
