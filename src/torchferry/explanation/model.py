"""What a log says about errors: the interface between reading, ordering and reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchferry.text import Text
from torchferry.vendors.error_patterns import Effect, ErrorPattern

UNKNOWN_RANK = 4  # behind those of all rules


@dataclass(frozen=True)
class Frame:
    """A line of a program in a traceback."""

    file: str
    line: int
    function: str
    is_library: bool = False  # not of the user's own program


@dataclass
class FoundMessage:
    """A message that was found: its first place, and how often it came again in the same process."""

    pattern: ErrorPattern | None  # None: no rule knows it
    source: int  # which log
    line: int  # from 1 on
    text: str  # without colours, the rank and the end of the line
    episode: int  # messages near to each other belong to one
    rank: int | None = None  # of the process that wrote it
    time: float | None = None
    has_zone: bool = False  # whether the log says of which zone its times are
    has_year: bool = True  # False: the year of its time is guessed
    groups: dict[str, str] = field(default_factory=dict)  # what the texts of the pattern may name
    meaning: Text | None = None  # of its code
    frame: Frame | None = None  # the innermost line of the user's program
    before: tuple[str, ...] = ()
    count: int = 1
    is_certain: bool = True  # False: a line that only calls itself an error
    is_spoken_of: bool = False  # a known error in a line that is none: a warning, a setting, a quotation
    writer: str = ""  # the process as its lines name it, where they bear no rank
    lines_after: int = 0  # how far the log goes on behind it
    is_survived: bool = False  # the program went on for long after it

    @property
    def effect(self) -> Effect:
        return Effect.ERROR if self.pattern is None else self.pattern.effect

    @property
    def is_failure(self) -> bool:
        """Whether it may be what ended the run, or follow from that."""
        may_end = self.effect in (Effect.ERROR, Effect.CONSEQUENCE)
        return may_end and not self.is_spoken_of and not self.is_survived

    @property
    def id(self) -> str:
        return "" if self.pattern is None else self.pattern.id


@dataclass(frozen=True)
class LauncherReport:
    """What a launcher says about the process that failed first."""

    rank: int
    exit_code: int | None
    time: str


@dataclass
class Log:
    """One log that was read."""

    name: str
    rank: int | None = None  # as its name says
    findings: list[FoundMessage] = field(default_factory=list)
    lines: int = 0
    bytes: int = 0
    launched: LauncherReport | None = None
    left_out: int = 0  # findings beyond those that are kept
    only_counted: int = 0  # lines about errors that were not looked at, for too many came before them
    damage: str = ""  # why it was not read to its end


@dataclass(frozen=True)
class Failure:
    """The first error of one process."""

    log: int
    rank: int | None
    finding: FoundMessage


@dataclass(frozen=True)
class Explanation:
    """All logs, and what follows from them."""

    logs: tuple[Log, ...]
    ordered: tuple[FoundMessage, ...]  # the cause first
    failures: tuple[Failure, ...]  # in order of time; only where there are several processes
    unread: dict[str, str]  # file -> why

    @property
    def cause(self) -> FoundMessage | None:
        """What most likely made the run fail; None if there is no error at all."""
        first = self.ordered[0] if self.ordered else None
        if first is None or not first.is_failure:
            return None
        # A line that only calls itself an error is the cause of something only if something has failed.
        has_failed = any(each.is_failure and each.is_certain for each in self.ordered)
        return first if first.is_certain or has_failed else None

    @property
    def surfaced(self) -> Frame | None:
        """Where the cause came up in the program: also where the device has reported it later, with another error."""
        cause = self.cause
        if cause is None or cause.frame is not None or cause.pattern is None or not cause.pattern.late:
            return None if cause is None else cause.frame
        place = (cause.source, cause.episode, cause.rank, cause.writer)
        later = (
            each.frame
            for each in sorted(self.ordered, key=lambda each: each.line)
            if each.line > cause.line and (each.source, each.episode, each.rank, each.writer) == place
        )
        return next(filter(None, later), None)
