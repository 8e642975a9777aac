"""Explains all logs of a run, a message, or a code."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from torchferry.explanation.lines import rank_in_name
from torchferry.explanation.model import UNKNOWN_RANK, Explanation, Failure, FoundMessage, Log
from torchferry.explanation.reading import LogReader
from torchferry.explanation.report import cause_of, remedy_of
from torchferry.explanation.rules import RuleBook, rule_book
from torchferry.logs import blocks, blocks_of_file, log_files
from torchferry.text import Text
from torchferry.vendors.error_patterns import Effect, load_errors
from torchferry.vendors.model import Vendor

_NEVER = float("inf")
_CLASSES = {Effect.ERROR: 0, Effect.CONSEQUENCE: 2, Effect.NOTICE: 4, Effect.HARMLESS: 5}
_UNCERTAIN, _NO_FAILURE = 1, 3


def in_order(logs: Sequence[Log]) -> tuple[FoundMessage, ...]:
    """All findings: errors before consequences, the earlier before the later, within an episode the best known.

    Times decide between logs; within one log its lines do.
    """
    times: dict[tuple[int, int], float] = {}  # of each episode
    for log in logs if len(logs) > 1 else ():
        for finding in log.findings:
            place = (finding.source, finding.episode)
            time = _NEVER if finding.time is None else finding.time
            times[place] = min(time, times.get(place, _NEVER))

    def key(finding: FoundMessage) -> tuple[int, float, int, int, int, int]:
        place = (finding.source, finding.episode)
        rank = UNKNOWN_RANK if finding.pattern is None else finding.pattern.rank
        order = _CLASSES[finding.effect] if finding.is_certain else _UNCERTAIN
        if order <= _CLASSES[Effect.CONSEQUENCE] and not finding.is_failure:
            order = _NO_FAILURE
        return (order, times.get(place, _NEVER), *place, rank, finding.line)

    return tuple(sorted((finding for log in logs for finding in log.findings), key=key))


def failures(ordered: Sequence[FoundMessage]) -> tuple[Failure, ...]:
    """The first error of each process, in order; none if there is only one process.

    Where lines bear ranks, those without one are the launcher's.
    """
    failed = [finding for finding in ordered if finding.is_failure and finding.is_certain]
    if any(finding.rank is not None for finding in failed):
        failed = [finding for finding in failed if finding.rank is not None]
    first: dict[tuple[int, int | None, str], Failure] = {}
    for finding in failed:
        place = (-1 if finding.rank is not None else finding.source, finding.rank, finding.writer)
        first.setdefault(place, Failure(finding.source, finding.rank, finding))
    return tuple(first.values()) if len(first) > 1 else ()


Shown = Callable[[int, int, str], None]  # bytes read, bytes in all, the file


def explain_logs(paths: Sequence[Path], book: RuleBook, show: Shown | None = None) -> Explanation:
    """Read the files, and the logs in the folders; those that can't be read are named."""
    files, unread = log_files(list(paths), "")
    total = done = 0
    for file in files:
        with suppress(OSError):
            total += os.stat(file).st_size
    logs: list[Log] = []
    for file in files:
        log = Log(str(file), rank_in_name(file.as_posix()))

        def progress(count: int, name: str = file.name) -> None:
            nonlocal done
            done += count
            if show is not None:
                show(done, total, name)

        try:
            source = blocks_of_file(file, progress, partial(setattr, log, "damage"))
            LogReader(book, log, len(logs), _year(file)).read(source)
        except OSError as error:
            unread[str(file)] = error.strerror or str(error)
        else:
            logs.append(log)
    return _explanation(logs, unread)


def explain_stream(
    stream: io.BufferedReader, name: str, book: RuleBook, copy: io.RawIOBase | io.BufferedIOBase | None = None
) -> Explanation:
    """Read a pipe to its end; what is read also goes to `copy`, at once."""
    log = Log(name)

    def copied() -> Iterator[bytes]:
        for block in blocks(stream, damaged=partial(setattr, log, "damage")):
            if copy is not None:
                copy.write(block)
                copy.flush()
            yield block

    LogReader(book, log, 0, time.localtime().tm_year).read(copied())
    return _explanation([log], {})


def explain_text(text: str, book: RuleBook, name: str = "") -> Explanation:
    """Explain a message by itself."""
    log = Log(name)
    LogReader(book, log, 0, time.localtime().tm_year).read([text.encode("utf-8", "surrogateescape")])
    return _explanation([log], {})


def explain_code(code: str, book: RuleBook) -> list[FoundMessage]:
    """What an error code means; a vendor's own first."""
    return [
        FoundMessage(match.pattern, 0, 0, code, 0, groups=match.groups, meaning=match.meaning)
        for match in book.code(code.strip())
    ]


def _explanation(logs: list[Log], unread: dict[str, str]) -> Explanation:
    ordered = in_order(logs)
    return Explanation(tuple(logs), ordered, failures(ordered), unread)


def _year(file: Path) -> int:
    """For lines that leave it out: the year in which the log was written last."""
    try:
        return time.localtime(os.stat(file).st_mtime).tm_year
    except OSError:
        return time.localtime().tm_year


# Explains the end of a program that `ferry run` has started: its exception, or the signal that ended it.

# Exit codes as shells count them -> what a shell prints for them, which the rules know.
_SIGNALS = {134: "Aborted", 135: "Bus error", 137: "Killed", 139: "Segmentation fault"}
_SAID = Text(
    "{cause}; what to do: {remedy} (rule {rule})",
    "{cause}；处理方法：{remedy}（规则 {rule}）",
)
_FIRST = Text("rank {rank} failed first; {said}", "rank {rank} 最先失败；{said}")


def explain_exception(traceback: str, vendor: Vendor | None) -> Text | None:
    """One sentence about an exception as Python prints it; None if no rule knows it. Without a vendor by all rules."""
    book = rule_book() if vendor is None else RuleBook([load_errors(Path(vendor.folder))])
    explanation = explain_text(traceback, book)
    cause, launched = explanation.cause, explanation.logs[0].launched
    if cause is None or cause.pattern is None:
        return None
    said = _SAID.format(cause=cause_of(cause), remedy=remedy_of(cause), rule=cause.id)
    return said if launched is None else _FIRST.format(rank=launched.rank, said=said)


def explain_exit(code: int, vendor: Vendor) -> Text | None:
    """One sentence about a program that a signal has ended; None for all other exit codes."""
    word = _SIGNALS.get(code)
    return None if word is None else explain_exception(word, vendor)
