"""Lines of logs: what launchers put before them, and which belong to a traceback."""

from __future__ import annotations

import re
from calendar import isleap
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from torchferry.explanation.model import Frame

_COLOURS = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")
# [rank3]: of PyTorch, [default3]: of torchrun, [1,3]<stderr>: and [prterun-host@1,3]<stderr>: of MPI
_RANK = re.compile(r"\[(?:rank|default|(?:[\w.@-]*@)?\d+,)(\d{1,6})\](?:<std\w+>)?: ?")
_TASK = re.compile(r" *(\d{1,6}):(?: |$)|\[(\d{1,6})\](?: |$)")  # of srun -l and of mpirun -l
# (Worker pid=16, ip=10.0.0.1) of Ray and vLLM, worker-1  | of docker compose, [pod/train-0/main] of kubectl
_WRITER = re.compile(
    r"(?:\((?P<actor>[\w.: -]{0,80}\bpid=\d+(?:, ip=[\w.:]+)?)\) ?)+|(?P<service>[\w.-]{1,80}-\d+) +\| |\[(?P<pod>pod/[\w./-]+)\] "
)
# A container runtime's own time and stream, before all else.
_CONTAINER = re.compile(
    r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?"
)
_RANK_IN_NAME = re.compile(
    r"(?:^|[/_.-])(?:rank|worker|process|proc|gpu|npu|mlu|sdaa|local_rank)[_.-]?(\d{1,6})(?=[/_.-]|$)", re.I
)
_TORCHRUN_FOLDER = re.compile(r"attempt_\d+/(\d+)/std(?:err|out)\.log")

_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<milli>\d{1,9})(?:\.(?P<micro>\d{3}))?)?"
_ZONE = r"(?P<zone> ?(?:Z|[+-]\d\d:?\d\d)(?![\d:]))?"
_MOMENTS = (
    re.compile(rf"(?P<year>20\d\d)[-/:](?P<month>\d\d)[-/:](?P<day>\d\d)[-T _]{_CLOCK}{_ZONE}"),
    re.compile(rf"(?:^|\[)[EWIFC](?P<month>\d{{1,2}})(?P<day>\d\d) {_CLOCK}"),  # glog, and PyTorch's C++ part
    re.compile(rf"(?:ERROR|WARNING|INFO|DEBUG) (?P<month>\d\d)-(?P<day>\d\d) {_CLOCK}"),  # vLLM
)
_DATED = re.compile(rb"20\d\d[-/]\d\d[-/]\d\d[-T _]\d\d:\d\d:\d\d")
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)"
# What loggers put before a message: time, level, place, in any order. PyTorch's C++ part: [E506 10:11:12.1 File.cpp:616]
_LOGGER = re.compile(
    r"(?:(?:[\[(]?20\d\d[-/:]\d\d[-/:]\d\d[-T _]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?[\])]?(?::\( *\d+\))?"
    r"|\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.,\d-]*"
    rf"|[\[(<]{_LEVEL} *[\])>]|{_LEVEL}(?::[\w.]+(?=:))?(?![\w=/])"
    r"|\[?[EWIFC](?:\d{3,4})? (?:\d\d:\d\d:\d\d[.\d]* )?(?:\d+ )?[\w./-]+:\d+\]"
    r"|[\[(]?[\w./<>-]+:\d+(?::[\w<>]+)?[\])]|\|CCL_(?:WARN|ERROR)\||[\w.<>]+:[\w<>]+:\d+(?= -| \|)|stderr(?= \|)"
    rf"|[\w.]+(?= - {_LEVEL} - ))"
    r"(?: *[|:-] +|: ?| +|$))+"
)
_LEVELS = re.compile(rf"(?:(?<![\w=/])|(?<=CCL_)){_LEVEL}(?![\w=/])|(?:^|\[)[EWIFC](?=[\d ])")
_PYTHONS_WARNING = re.compile(r"^[^ ]{1,300}:\d+: \w*Warning: |^\w*Warning: ")


class LogLevel(Enum):
    """What a logger thinks of its line."""

    NONE = ""
    MILD = "mild"  # a warning, or less
    ERROR = "error"
    FATAL = "fatal"


class Line(NamedTuple):
    """A line of a log, with the process that has written it."""

    rank: int | None
    writer: str  # the process as the line names it, where it is no rank
    text: str
    stamp: str = ""  # what was taken away before the text

    @property
    def process(self) -> int | str | None:
        return self.writer or None if self.rank is None else self.rank


def clean(line: bytes, has_tasks: bool = False) -> Line:
    """The text without colours and without the process before it; bytes that are no UTF-8 are written out."""
    plain = _COLOURS.sub(b"", line) if b"\x1b" in line else line
    whole = text = plain.decode("utf-8", "backslashreplace").replace("\0", "").rstrip()
    rank, writer = None, ""
    container = _CONTAINER.match(text)
    if container:
        text = text[container.end() :]
    match = _RANK.match(text) or (_TASK.match(text) if has_tasks else None)
    if match:
        rank, text = int(match[match.lastindex or 1]), text[match.end() :]
    named = _WRITER.match(text)
    if named:
        writer, text = named["actor"] or named["service"] or named["pod"], text[named.end() :]
    return Line(rank, writer, text, whole[: len(whole) - len(text)])


def has_tasks(beginning: bytes) -> bool:
    """Whether the lines of a log bear the numbers of srun -l or mpirun -l: all do, and a log has not only one line."""
    lines = [line for line in beginning.decode("utf-8", "replace").splitlines()[:-1] if line.strip()]
    return len(lines) > 1 and all(map(_TASK.match, lines))


def without_logger(text: str) -> str:
    """The message alone, without what a logger has put before it."""
    match = _LOGGER.match(text)
    end = match.end() if match else 0
    while text[max(0, end - 2) : end] == "  ":  # the message may be indented
        end -= 1
    return text[end:]


def level_of(text: str) -> LogLevel:
    """What a logger, or Python's warnings, think of the line."""
    head = _LOGGER.match(text)
    words = _LEVELS.findall(head[0]) if head else []
    if not words:
        return LogLevel.MILD if _PYTHONS_WARNING.match(text) else LogLevel.NONE
    letters = {word.strip("[")[0] for word in words}
    if "F" in letters:
        return LogLevel.FATAL
    if "E" in letters or "CRITICAL" in words:
        return LogLevel.ERROR
    return LogLevel.MILD


def rank_in_name(path: str) -> int | None:
    """The rank that a log's path names."""
    match = _TORCHRUN_FOLDER.search(path) or _RANK_IN_NAME.search(path)
    return int(match[1]) if match else None


class Moment(NamedTuple):
    """The time that a line bears."""

    seconds: float
    has_zone: bool  # else it is taken for a local one
    has_year: bool = True  # else it is guessed


def in_year_of(seconds: float, known: float) -> float:
    """The moment whose year was guessed, in the year that brings it nearest to one that is known."""
    guessed = datetime.fromtimestamp(seconds)
    years = (datetime.fromtimestamp(known).year + offset for offset in (-1, 0, 1))
    moments = [
        guessed.replace(year=year)
        for year in years
        if (guessed.month, guessed.day) != (2, 29) or isleap(year)
    ]
    return min(
        (moment.timestamp() for moment in moments), key=lambda each: abs(each - known), default=seconds
    )


def first_date(text: bytes) -> float | None:
    """The first moment with its year in a piece of a log."""
    match = _DATED.search(text)
    found = None if match is None else moment(match[0].decode(), 0)
    return None if found is None else found.seconds


def moment(text: str, year: int) -> Moment | None:
    """The time that a line bears; `year` is for the forms that leave it out."""
    match = next(filter(None, (form.search(text) for form in _MOMENTS)), None)
    if match is None:
        return None
    parts = match.groupdict()
    whole = {name: int(parts[name] or 0) for name in ("month", "day", "hour", "minute", "second")}
    fraction = float(f"0.{parts['milli'] or 0}{parts['micro'] or ''}")
    zone = (parts.get("zone") or "").strip()
    try:
        local = datetime(int(parts.get("year") or year), **whole)  # type: ignore[arg-type]
        if zone:
            local = local.replace(tzinfo=datetime.strptime(zone, "%z").tzinfo)  # also Z
        return Moment(local.timestamp() + fraction, bool(zone), parts.get("year") is not None)
    except ValueError:  # digits that are no time
        return None


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
            file, function = frame["file"], frame["function"] or ""
            is_library = _LIBRARIES.search(file) is not None
            current.frames.append(Frame(file, int(frame["line"]), function, is_library))
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
