"""Reads one log from beginning to end: known and unknown errors, each with its first place."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchferry.explain.launcher import LauncherSummary
from torchferry.explain.lines import clean, moment
from torchferry.explain.model import Finding, Log
from torchferry.explain.rules import DIGITS, Match, RuleBook, Shape
from torchferry.explain.scanning import RawLine, Scanner
from torchferry.explain.tracebacks import Traceback, Tracebacks
from torchferry.explain.unknown import Strength
from torchferry.vendors.error_patterns import Effect

MOST = 300  # findings of one log that are kept
_NEAR = 40  # lines between two errors of one episode
_MESSAGE = 12  # lines that may belong to an exception's message
_TRACEBACK = 64  # lines to wait for the next one of a traceback
_AFTER = 2  # lines behind a message that may say more
_CONTEXT = 5
_CONTEXT_FOR_TIME = 40
_MAY_BEAR_RANK = re.compile(rb"[\x1b\s]|\[[a-z0-9]")


class LogReader:
    """The state while a log is read."""

    def __init__(self, book: RuleBook, log: Log, source: int, year: int) -> None:
        self._book = book
        self._log = log
        self._source = source
        self._year = year
        self._scanner = Scanner()
        self._tracebacks = Tracebacks()
        self._launcher = LauncherSummary()
        self._findings: dict[object, Finding] = {}
        self._last_lines: dict[object, int] = {}
        self._within: dict[int | None, Match] = {}  # rules that fit a line inside an open traceback
        self._complete: dict[int | None, tuple[int, Traceback]] = {}  # the last one, and its exception's line
        self._pending: dict[int | None, tuple[object, Finding]] = {}  # exceptions that no rule knows, so far
        self._plain: dict[Shape, object] = {}  # forms of lines -> the finding that they all are
        self._episode = 0
        self._last_error = -_NEAR

    def read(self, blocks: Iterable[bytes]) -> Log:
        """Read it; what was found is put into the log."""
        for raw in self._scanner.interesting(blocks):
            shape = self._book.shape(raw.line)
            if (
                self._tracebacks.is_open
                or self._launcher.wants_more
                or (shape is not None and not self._is_repeated(raw, shape))
            ):
                self._look_at(raw, shape)
        self._settle(None)
        self._log.lines, self._log.bytes = self._scanner.lines, self._scanner.bytes
        for key, finding in self._findings.items():
            finding.lines_after = self._log.lines - self._last_lines[key]
        self._log.findings = list(self._findings.values())
        self._log.launched = self._launcher.result()
        return self._log

    def _is_repeated(self, raw: RawLine, shape: Shape) -> bool:
        """Whether a line that says the same has been looked at; then it is only counted. Logs may hold millions."""
        key = self._plain.get(shape)
        return key is not None and not _MAY_BEAR_RANK.match(raw.line) and self._again(key, raw)

    def _look_at(self, raw: RawLine, shape: Shape | None) -> None:
        line = clean(raw.line)
        rank = self._log.rank if line.rank is None else line.rank
        self._launcher.feed(line.text)
        if self._launcher.wants_more:
            self._scanner.follow(1)
        traceback = self._tracebacks.feed(raw.number, rank, line.text)
        if self._tracebacks.is_open:
            self._scanner.follow(_TRACEBACK)
        match = None if shape is None else self._book.match(line.text, shape)
        if traceback is not None:
            self._exception(raw, rank, traceback, match)
        elif self._tracebacks.is_open_for(rank):
            if match is not None:
                self._within.setdefault(rank, match)
        elif match is not None:
            if shape is not None and shape.strength is Strength.CERTAIN:  # an error of its own
                self._settle(rank)
            self._remember(shape, self._known(raw, rank, line.text, match))
        elif shape is not None and shape.strength >= Strength.WEAK:
            self._remember(shape, self._unknown(raw, rank, line.text, shape.strength))

    def _remember(self, shape: Shape | None, key: object) -> None:
        if shape is not None and shape.is_plain and key in self._findings:
            if len(self._plain) >= MOST:
                self._plain.clear()
            self._plain[shape] = key

    def _exception(self, raw: RawLine, rank: int | None, traceback: Traceback, match: Match | None) -> None:
        """The last line of a traceback."""
        self._complete[rank] = (raw.number, traceback)
        self._scanner.follow(_MESSAGE)
        self._settle(rank)
        match = match or self._within.get(rank)
        self._within.pop(rank, None)
        if match is not None:
            self._known(raw, rank, traceback.exception, match)
            return
        frame = traceback.user_frame()
        key = ("exception", rank, traceback.exception.partition(":")[0], frame)
        if not self._again(key, raw):
            self._pending[rank] = (key, self._made(raw, rank, traceback.exception, None))

    def _known(self, raw: RawLine, rank: int | None, text: str, match: Match) -> object:
        """Answers the finding's key."""
        if match.pattern.effect is Effect.ERROR:
            self._forget_pending(rank, raw.number)
        key = (match.pattern.id, rank, match.groups.get("code"), match.groups.get("op"))
        if not self._again(key, raw):
            self._scanner.follow(_AFTER)
            self._keep(key, self._made(raw, rank, text, match), raw.number)
        return key

    def _unknown(self, raw: RawLine, rank: int | None, text: str, strength: Strength) -> object:
        """Answers the finding's key."""
        key = ("line", rank, raw.line.translate(None, DIGITS))
        if self._again(key, raw):
            return key
        self._scanner.follow(_MESSAGE if strength is Strength.CERTAIN else _AFTER)
        finding = self._made(raw, rank, text, None)
        finding.is_certain = strength is Strength.CERTAIN
        if finding.is_certain:
            self._settle(rank)
            self._pending[rank] = (key, finding)
        else:
            self._keep(key, finding, raw.number)
        return key

    def _made(self, raw: RawLine, rank: int | None, text: str, match: Match | None) -> Finding:
        if match is None or match.pattern.effect in (Effect.ERROR, Effect.CONSEQUENCE):
            if raw.number - self._last_error > _NEAR:
                self._episode += 1
            self._last_error = raw.number
        own = clean(raw.line)
        earlier = [clean(line) for line in raw.before(_CONTEXT_FOR_TIME)]
        times = (moment(line.text, self._year) for line in (own, *reversed(earlier)))
        at, traceback = self._complete.get(rank, (0, None))
        is_of_traceback = traceback is not None and raw.number - at <= _MESSAGE
        return Finding(
            pattern=None if match is None else match.pattern,
            source=self._source,
            line=raw.number,
            text=text,
            episode=self._episode,
            rank=rank,
            time=next((time for time in times if time is not None), None),
            groups={} if match is None else match.groups,
            meaning=None if match is None else match.meaning,
            frame=traceback.user_frame() if traceback is not None and is_of_traceback else None,
            before=tuple([line.text for line in earlier if line.rank == own.rank][-_CONTEXT:]),
        )

    def _again(self, key: object, raw: RawLine) -> bool:
        """Whether this is known already; then it is counted."""
        finding = self._findings.get(key)
        if finding is None:
            return False
        finding.count += 1
        self._last_lines[key] = raw.number
        if finding.effect in (Effect.ERROR, Effect.CONSEQUENCE):
            self._last_error = raw.number
        return True

    def _keep(self, key: object, finding: Finding, last_line: int) -> None:
        if len(self._findings) >= MOST:
            self._log.left_out += 1
            return
        self._findings[key] = finding
        self._last_lines[key] = last_line

    def _forget_pending(self, rank: int | None, number: int) -> None:
        """A rule knows the message of which this exception is the first line."""
        key_and_finding = self._pending.get(rank)
        if key_and_finding is not None and number - key_and_finding[1].line <= _MESSAGE:
            del self._pending[rank]

    def _settle(self, rank: int | None) -> None:
        """The exceptions that wait for a rule, of one process or (None) of all, remain unknown."""
        for waiting in [rank] if rank is not None else list(self._pending):
            key, finding = self._pending.pop(waiting, (None, None))
            if finding is not None and not self._repeats(key):
                self._keep(key, finding, finding.line)

    def _repeats(self, key: object) -> bool:
        finding = self._findings.get(key)
        if finding is not None:
            finding.count += 1
        return finding is not None
