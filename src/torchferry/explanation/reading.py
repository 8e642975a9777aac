"""Reads one log from beginning to end: known and unknown errors, each with its first place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchferry.explanation.lines import (
    HEAD,
    Line,
    Process,
    Traceback,
    Tracebacks,
    clean,
    first_date,
    has_tasks,
    in_year_of,
    moment,
)
from torchferry.explanation.model import FoundMessage, LauncherReport, Log
from torchferry.explanation.rules import RuleBook, RuleMatch, RuleStrength, Shape, is_better, is_spoken_of
from torchferry.explanation.scanning import Findings, RawLine, Repetitions, Scanner, form_of
from torchferry.vendors.error_patterns import Effect

_HEAD = "Root Cause (first observed failure)"
_LINES = 10  # that follow it
_FIELD = re.compile(r"^\s*(time|rank|exitcode)\s*:\s*(-?[\w:.+-]+)")


class LauncherSummary:
    """What torchrun says at its end about the rank that failed first, read line by line."""

    def __init__(self) -> None:
        self._left = 0
        self._fields: dict[str, str] = {}

    @property
    def wants_more(self) -> bool:
        return self._left > 0

    def feed(self, text: str) -> None:
        """Look at the next line."""
        if _HEAD in text and not self._fields:
            self._left = _LINES
        elif self._left:
            self._left -= 1
            match = _FIELD.match(text)
            if match:
                self._fields.setdefault(match[1], match[2])

    def result(self) -> LauncherReport | None:
        """None if there is no such summary."""
        rank = self._fields.get("rank", "")
        if not rank.isdecimal():
            return None
        code = self._fields.get("exitcode", "")
        exit_code = int(code) if re.fullmatch(r"-?\d+", code) else None
        return LauncherReport(int(rank), exit_code, self._fields.get("time", ""))


_MESSAGE = 12  # lines that may belong to an exception's message
_TRACEBACK = 64  # lines to wait for the next one of a traceback
_AFTER = 2  # lines behind a message that may say more
_CONTEXT = 5
_BEGINNING = 1 << 12  # bytes that show how a log's lines begin
_CONTEXT_FOR_TIME = 40
_DATED_WITHIN = 1 << 16  # bytes of the beginning that are searched for a line with its year


class _Exception(NamedTuple):
    number: int  # of the line that names it
    traceback: Traceback
    key: object  # of the finding


class LogReader:
    """The state while a log is read."""

    def __init__(self, book: RuleBook, log: Log, source: int, year: int) -> None:
        self._book = book
        self._log = log
        self._source = source
        self._year = year
        self._known_time: float | None = None  # of a line that names its year
        self._findings = Findings(log)
        self._repetitions = Repetitions(book, self._findings)
        self._scanner = Scanner(self._repetitions)
        self._tracebacks = Tracebacks()
        self._launcher = LauncherSummary()
        self._within: dict[Process, RuleMatch] = {}  # rules that fit a line inside an open traceback
        self._exceptions: dict[Process, _Exception] = {}
        # exceptions that no rule knows, so far
        self._pending: dict[Process, tuple[object, FoundMessage]] = {}

    def read(self, blocks: Iterable[bytes]) -> Log:
        """Read it; what was found is put into the log."""
        for raw in self._scanner.interesting(self._beginning_seen(blocks)):
            if self._repetitions.skips(raw.line):
                continue
            form = form_of(raw.line)
            shape = self._book.shape(raw.line, form)
            if (
                self._tracebacks.is_open
                or self._launcher.wants_more
                or (shape is not None and not self._repetitions.count(raw.line, form, raw.number))
            ):
                self._look_at(raw, form, shape)
        self._settle(None)
        for process, traceback in self._tracebacks.unfinished().items():
            # It stands at the end of the log, without its exception.
            self._findings.note_error(traceback.line)
            episode, frame = self._findings.episode, traceback.user_frame()
            found = FoundMessage(None, self._source, traceback.line, HEAD, episode, frame=frame)
            found.rank, found.writer = self._named(process)
            self._findings.keep(("torn", process), found, traceback.line + traceback.length)
        self._log.lines, self._log.bytes = self._scanner.lines, self._scanner.bytes
        self._log.only_counted = self._repetitions.only_counted
        self._log.launched = self._launcher.result()
        if self._log.launched is not None:
            self._note_date(self._log.launched.time.encode())
        self._findings.finish()
        for finding in self._log.findings:
            if finding.time is not None and not finding.has_year and self._known_time is not None:
                finding.time = in_year_of(finding.time, self._known_time)
        return self._log

    def _beginning_seen(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for number, block in enumerate(blocks):
            if not number:
                self._repetitions.has_tasks = has_tasks(block[:_BEGINNING])
                self._note_date(block[:_DATED_WITHIN])
            yield block

    def _note_date(self, text: bytes) -> None:
        if self._known_time is None:
            self._known_time = first_date(text)

    def _look_at(self, raw: RawLine, form: bytes, shape: Shape | None) -> None:
        line = self._clean(raw.line)
        process = self._log.rank if line.process is None else line.process
        self._launcher.feed(line.text)
        if self._launcher.wants_more:
            self._scanner.follow(1)
        traceback = self._tracebacks.feed(raw.number, process, line.text)
        if self._tracebacks.is_open:
            self._scanner.follow(_TRACEBACK)
        # only the program's innermost line can be the one that failed
        if line.text.lstrip().startswith('File "'):
            self._within.pop(process, None)
        files = () if traceback is None else traceback.files
        match = None if shape is None else self._book.match(line.text, shape, files)
        if traceback is not None:
            # drawn, or behind what a logger has put there
            if match is None and traceback.exception != line.text:
                match = self._book.explain(traceback.exception, files)
            self._exception(raw, process, traceback, match)
        elif self._tracebacks.is_open_for(process):
            if match is not None:
                self._within.setdefault(process, match)
        elif shape is not None:
            self._repetitions.remember(raw.line, form, shape, self._line(raw, process, line, shape, match))

    def _clean(self, line: bytes) -> Line:
        return clean(line, self._repetitions.has_tasks)

    def _line(
        self, raw: RawLine, process: Process, line: Line, shape: Shape, match: RuleMatch | None
    ) -> object:
        """A line outside of tracebacks; answers the finding's key, None if it is none of its own."""
        is_certain = shape.strength is RuleStrength.CERTAIN
        if match is None:
            if shape.strength < RuleStrength.WEAK:
                return None
            return self._unknown(raw, process, line.text, is_certain)
        if is_certain:  # an error of its own
            self._settle(process)
        exception = self._exceptions.get(process)
        if exception is None or raw.number - exception.number >= _MESSAGE:
            return self._known(raw, process, line.text, match, is_spoken_of(line.text, match.place))
        is_own = is_certain or match.pattern.effect is not Effect.ERROR
        if is_own or self._is_better(process, match, exception):
            return self._known(raw, process, line.text, match)
        return None

    def _is_better(self, process: Process, match: RuleMatch, exception: _Exception) -> bool:
        """Whether a further line of an exception's message is better known than its first; then that is taken back."""
        first = self._findings.get(exception.key)
        if first is None or first.pattern is None:
            return True
        if not is_better(match.pattern, first.pattern):
            return False
        if first.pattern.effect is Effect.ERROR:
            self._findings.take_back(exception.key)
            self._exceptions[process] = exception._replace(key=None)
        return True

    def _exception(
        self, raw: RawLine, process: Process, traceback: Traceback, match: RuleMatch | None
    ) -> None:
        self._exceptions[process] = _Exception(raw.number, traceback, None)
        self._scanner.follow(_MESSAGE)
        self._settle(process)
        match = match or self._within.get(process)
        self._within.pop(process, None)
        if match is not None:
            key = self._known(raw, process, traceback.exception, match)
            self._exceptions[process] = _Exception(raw.number, traceback, key)
            return
        frame = traceback.user_frame()
        key = ("exception", process, traceback.exception.partition(":")[0], frame)
        if self._findings.is_full and key not in self._findings:
            self._findings.leave_out(raw.number)
        elif not self._findings.again(key, raw.number):
            self._pending[process] = (key, self._made(raw, process, traceback.exception, None))

    def _named(self, process: Process) -> tuple[int | None, str]:
        """The rank of a process and, if its lines bear none, the name that they bear."""
        return (self._log.rank, process) if isinstance(process, str) else (process, "")

    def _known(
        self, raw: RawLine, process: Process, text: str, match: RuleMatch, spoken_of: bool = False
    ) -> object:
        """Keep or count a message that a rule knows; answers the finding's key."""
        if match.pattern.effect is Effect.ERROR and not spoken_of and process in self._pending:
            # the exception that waits is the first line of this message
            if raw.number - self._pending[process][1].line <= _MESSAGE:
                del self._pending[process]
        key = (match.pattern.id, process, match.groups.get("code"), match.groups.get("op"), spoken_of)
        if not self._findings.again(key, raw.number):
            self._scanner.follow(_AFTER)
            self._findings.keep(key, self._made(raw, process, text, match, spoken_of), raw.number)
        return key

    def _unknown(self, raw: RawLine, process: Process, text: str, is_certain: bool) -> object:
        """Keep or count a line that no rule knows; answers the finding's key."""
        key = ("line", process, form_of(raw.line))
        if self._findings.again(key, raw.number):
            return key
        if self._findings.is_full:
            self._findings.leave_out(raw.number)
            return key
        self._scanner.follow(_MESSAGE if is_certain else _AFTER)
        finding = self._made(raw, process, text, None)
        finding.is_certain = is_certain
        if is_certain:
            self._settle(process)
            self._pending[process] = (key, finding)
        else:
            self._findings.keep(key, finding, raw.number)
        return key

    def _made(
        self, raw: RawLine, process: Process, text: str, match: RuleMatch | None, spoken_of: bool = False
    ) -> FoundMessage:
        effect = Effect.ERROR if match is None else match.pattern.effect
        if effect in (Effect.ERROR, Effect.CONSEQUENCE) and not spoken_of:
            self._findings.note_error(raw.number)
        own = self._clean(raw.line)
        earlier = [self._clean(line) for line in raw.before(_CONTEXT_FOR_TIME)]
        times = (moment(line.stamp + line.text, self._year) for line in (own, *reversed(earlier)))
        time = next((time for time in times if time is not None), None)
        if time is not None and time.has_year and self._known_time is None:
            self._known_time = time.seconds
        exception = self._exceptions.get(process)
        is_of_exception = exception is not None and raw.number - exception.number <= _MESSAGE
        rank, writer = self._named(process)
        return FoundMessage(
            pattern=None if match is None else match.pattern,
            source=self._source,
            line=raw.number,
            text=text,
            episode=self._findings.episode,
            rank=rank,
            writer=writer,
            time=None if time is None else time.seconds,
            has_zone=time is not None and time.has_zone,
            has_year=time is None or time.has_year,
            groups={} if match is None else match.groups,
            meaning=None if match is None else match.meaning,
            frame=exception.traceback.user_frame() if exception is not None and is_of_exception else None,
            before=tuple([line.text for line in earlier if line.process == own.process][-_CONTEXT:]),
            is_spoken_of=spoken_of,
        )

    def _settle(self, process: Process) -> None:
        """The exceptions that wait for a rule, of one process or (None) of all, remain unknown."""
        for waiting in [process] if process is not None else list(self._pending):
            key, finding = self._pending.pop(waiting, (None, None))
            if finding is not None and not self._findings.again(key, finding.line):
                self._findings.keep(key, finding, finding.line)
