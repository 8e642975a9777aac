"""Reads the host logs of a run: takes lines apart, counts signatures and compiles, and tells which compiles came after the warm-up."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from torchferry.errors import InputError
from torchferry.logs import Progress, blocks_of_file, log_files
from torchferry.perf.oplog.model import (
    Basis,
    Compile,
    LoggedProcess,
    LoggedSignature,
    LoggedTensor,
    Operator,
    OpLog,
)
from torchferry.text import Text
from torchferry.vendors.host import HostLog, load_host
from torchferry.vendors.registry import get_vendor, vendor_names

_DIGITS = re.compile(r"\d+")
_SIZE = re.compile(r"-?\d{1,19}")  # longer ones are no sizes, and Python may refuse to read them
_CENTURY = 3.2e9  # seconds
_DIGITS_OF_INT = 19
_HEAD = 400  # bytes of a line in which its header stands
_SLACK = 8  # a cut line may be shorter than the limit by its end


class LineHeader(NamedTuple):
    """Who wrote a line, and when, as the line has it; None: it does not say."""

    process: bytes | None
    thread: bytes | None
    time: bytes | None


_NO_HEADER = LineHeader(None, None, None)


class Forms:
    """The patterns of one vendor, compiled once."""

    def __init__(self, log: HostLog) -> None:
        self._log = log
        self._header = _with_groups(log.header, LineHeader._fields)
        self._compile = re.compile(log.compile_line.encode())
        self._miss = re.compile(log.miss_line.encode()) if log.miss_line else None
        self._tensor = re.compile(log.tensor)
        self._attributes = re.compile(log.attributes) if log.attributes else None
        self._prefix = log.summary_prefix.encode()

    def header(self, line: bytes) -> LineHeader:
        """What a line begins with."""
        found = self._header.search(line, 0, _HEAD)
        return _NO_HEADER if found is None else LineHeader(*found.group(*LineHeader._fields))

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

    def details(self, text: str) -> tuple[tuple[LoggedTensor, ...], tuple[LoggedTensor, ...], str]:
        """What stands behind an operator's type: inputs, outputs and attributes of a call."""
        sides: dict[str, list[LoggedTensor]] = {"In": [], "Out": []}
        dtypes, formats = self._log.dtypes, self._log.formats
        for found in self._tensor.finditer(text):
            groups = found.groupdict()
            form, dtype = groups.get("format") or "", groups.get("dtype") or ""
            storage = groups.get("storage") or form
            sizes = tuple(int(size) for size in _SIZE.findall(groups["shape"] or ""))
            sides[groups["side"]].append(
                LoggedTensor(
                    dtypes.get(dtype, dtype), formats.get(form, form), formats.get(storage, storage), sizes
                )
            )
        attributes = None if self._attributes is None else self._attributes.search(text)
        found_attributes = attributes["attributes"].strip() if attributes else ""
        return tuple(sides["In"]), tuple(sides["Out"]), found_attributes


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
    places = []
    for number, mark in enumerate(marks):
        place = data.find(mark, 0, end)
        while place >= 0:
            places.append((place, number))
            place = data.find(mark, place + len(mark), end)
    for place, number in sorted(places):
        start = data.rfind(b"\n", 0, place) + 1
        stop = data.find(b"\n", place)
        line = data[start : end if stop < 0 else stop]
        if len(line) <= LONGEST:
            yield Hit(number, place - start + len(marks[number]), line.rstrip(b"\r"))


_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d(?:[.]\d+)?)?")

_TEXTS = {
    Basis.TIME: Text("compiles after {value}", "{value} 之后的编译"),
    Basis.WARM_UP: Text(
        "compiles more than {value} s after a process's first operator", "进程第一个算子 {value} 秒之后的编译"
    ),
    Basis.SHAPES: Text(
        "compiles of an operator from its shape number {value} on (for equal types, formats and attributes)",
        "算子从第 {value} 种形状起的编译（类型、格式与属性相同）",
    ),
    Basis.HALF: Text(
        "compiles in the second half of the operators that a process called: an estimate; --warmup-until or "
        "--warmup-seconds is exact",
        "进程所调用算子后一半中的编译：仅为估计，--warmup-until 或 --warmup-seconds 更准确",
    ),
    Basis.UNKNOWN: Text(
        "the log has no operator calls, so the first step can't be told from the others; give --warmup-until or "
        "--warmup-seconds",
        "日志中没有算子调用，无法区分第一步与其余步；请给出 --warmup-until 或 --warmup-seconds",
    ),
}


@dataclass(frozen=True)
class WarmUp:
    """What the user says about the warm-up; at most one of them."""

    after: str = ""
    seconds: float | None = None
    shapes: int = 0


def recompiles(
    compiles: tuple[Compile, ...], processes: tuple[LoggedProcess, ...], warm_up: WarmUp
) -> tuple[tuple[Compile, ...], Basis, Text]:
    """The compiles after the warm-up, and on what basis they are told from the others."""
    if warm_up.after:
        moment = _moment(warm_up.after, processes)
        chosen = [entry for entry in compiles if entry.time is not None and entry.time > moment]
        return tuple(chosen), Basis.TIME, _TEXTS[Basis.TIME].format(value=warm_up.after)
    if warm_up.seconds is not None:
        _check_times(processes)
        firsts = {process.number: process.first for process in processes if process.first is not None}
        chosen = [
            entry
            for entry in compiles
            if entry.time is not None
            and entry.process in firsts
            and entry.time > firsts[entry.process] + warm_up.seconds
        ]
        text = _TEXTS[Basis.WARM_UP].format(value=f"{warm_up.seconds:g}")
        return tuple(chosen), Basis.WARM_UP, text
    if warm_up.shapes:
        found = _by_shapes(compiles, warm_up.shapes)
        return found, Basis.SHAPES, _TEXTS[Basis.SHAPES].format(value=warm_up.shapes)
    half = {process.number: process.calls / 2 for process in processes}
    if not any(half.values()):
        return (), Basis.UNKNOWN, _TEXTS[Basis.UNKNOWN]
    late = tuple(entry for entry in compiles if half[entry.process] and entry.call > half[entry.process])
    return late, Basis.HALF, _TEXTS[Basis.HALF]


def _moment(text: str, processes: tuple[LoggedProcess, ...]) -> float:
    """A time of the log; one without a day is of the day on which the log begins."""
    firsts = _check_times(processes)
    given = text
    if _CLOCK.fullmatch(text):
        day = datetime.datetime.fromtimestamp(min(firsts), datetime.timezone.utc)
        given = f"{day:%Y-%m-%d}-{text}"
    moment = seconds_of(given.encode())
    if moment is None:
        raise InputError(
            Text(
                f"--warmup-until {text}: not a time; write it as 10:11:12 or 2024-05-06-10:11:12",
                f"--warmup-until {text}：不是时间；请写成 10:11:12 或 2024-05-06-10:11:12",
            )
        )
    return moment


def _check_times(processes: tuple[LoggedProcess, ...]) -> list[float]:
    firsts = [process.first for process in processes if process.first is not None]
    if not firsts:
        raise InputError(
            Text(
                "the lines of this log have no times, so --warmup-until and --warmup-seconds can't be used; try --shapes 2",
                "该日志的行没有时间，因此不能使用 --warmup-until 和 --warmup；可以尝试 --shapes 2",
            )
        )
    return firsts


def _by_shapes(compiles: tuple[Compile, ...], count: int) -> tuple[Compile, ...]:
    """Compiles for the n-th shape and later ones of an operator that is the same in all else."""
    known: dict[tuple[object, ...], set[object]] = {}
    found = []
    for entry in compiles:
        signature = entry.signature
        if signature is None:
            continue
        kinds = tuple((tensor.dtype, tensor.storage, len(tensor.shape)) for tensor in signature.inputs)
        shapes = known.setdefault((entry.process, entry.operator, kinds, signature.attributes), set())
        shapes.add(signature.shapes)
        if len(shapes) >= count:
            found.append(entry)
    return tuple(found)


MAX_SIGNATURES = 200_000  # about a kilobyte each


@dataclass
class _SameText:
    type: str
    text: str
    calls: int = 0
    compiles: int = 0
    cut: bool = False
    summarized: int = 0


@dataclass
class _Process:
    calls: int = 0
    first: bytes | None = None
    last: bytes | None = None


@dataclass
class _Compile:
    operator: str
    process: bytes | None
    call: int
    time: bytes | None
    seen: _SameText | None
    seconds: float | None = None


class Marks(NamedTuple):
    """What to search for in bytes, and which of them mean what."""

    texts: tuple[bytes, ...]
    compile: int  # those before it are calls of operators
    miss: int


class Counter:
    """What was counted so far while logs are read."""

    def __init__(self, forms: Forms, marks: Marks) -> None:
        self._forms = forms
        self._marks = marks
        self._seen: dict[bytes, _SameText] = {}
        self._processes: dict[bytes | None, _Process] = {}
        self._compiles: list[_Compile] = []
        self._running: dict[tuple[bytes | None, bytes | None, str], _Compile] = {}
        self._last: dict[tuple[bytes | None, bytes | None], _SameText | None] = {}
        self._misses: dict[str, int] = {}
        self._uncounted: dict[str, int] = {}

    def add(self, hit: Hit) -> None:
        """Count one line."""
        header = self._forms.header(hit.line)
        process = self._processes.get(header.process)
        if process is None:
            process = self._processes[header.process] = _Process(first=header.time)
        process.last = header.time or process.last
        if hit.mark < self._marks.compile:
            self._call(hit, header, process)
        elif hit.mark == self._marks.compile:
            self._compile(hit.line, header, process)
        else:
            kind = self._forms.missed(hit.line)
            if kind:
                self._misses[kind] = self._misses.get(kind, 0) + 1

    def _call(self, hit: Hit, header: LineHeader, process: _Process) -> None:
        process.calls += 1
        text = hit.line[hit.at :]
        seen = self._seen.get(text)
        if seen is None:
            first, _, rest = decoded(text).partition(",")
            kind = first.strip()
            if len(self._seen) < MAX_SIGNATURES:
                seen = self._seen[text] = _SameText(kind, rest[1:], cut=self._forms.is_cut(hit.line))
            else:
                self._uncounted[kind] = self._uncounted.get(kind, 0) + 1
        self._last[header.process, header.thread] = seen
        if seen is not None:
            seen.calls += 1
            seen.summarized += self._forms.is_summarized(hit.line)

    def _compile(self, line: bytes, header: LineHeader, process: _Process) -> None:
        found = self._forms.compiled(line)
        if found is None:
            return
        kind, seconds = found
        key = (header.process, header.thread, kind)
        running = self._running.pop(key, None) if seconds is not None else None
        if running is not None:
            running.seconds = seconds
            return
        last = self._last.get(key[:2])
        seen = last if last is not None and last.type == kind else None
        if seen is not None:
            seen.compiles += 1
        compile_ = _Compile(kind, header.process, process.calls, header.time, seen, seconds)
        self._compiles.append(compile_)
        if seconds is None:
            self._running[key] = compile_

    def processes(self) -> tuple[LoggedProcess, ...]:
        """The processes of the logs, in the order of their first lines."""
        return tuple(
            LoggedProcess(
                number_of(number), process.calls, seconds_of(process.first), seconds_of(process.last)
            )
            for number, process in self._processes.items()
        )

    def results(self) -> OperatorCounts:
        """What was counted; recompiles are still to be told from the others."""
        by_text = {
            id(seen): LoggedSignature(
                seen.text,
                *self._forms.details(seen.text),
                seen.calls,
                seen.compiles,
                seen.cut,
                seen.summarized,
            )
            for seen in self._seen.values()
        }
        compiles = tuple(
            Compile(
                entry.operator,
                number_of(entry.process),
                entry.call,
                seconds_of(entry.time),
                entry.seconds,
                None if entry.seen is None else by_text[id(entry.seen)],
            )
            for entry in self._compiles
        )
        signatures: dict[str, list[LoggedSignature]] = {}
        for seen in self._seen.values():
            signatures.setdefault(seen.type, []).append(by_text[id(seen)])
        return OperatorCounts(signatures, compiles, self._misses, self._uncounted)


@dataclass(frozen=True)
class OperatorCounts:
    """What was counted, by type of operator."""

    signatures: dict[str, list[LoggedSignature]]
    compiles: tuple[Compile, ...]
    misses: dict[str, int]
    uncounted: dict[str, int] = field(default_factory=dict)

    def operators(self, recompiles: Iterable[Compile], conversions: Iterable[str]) -> tuple[Operator, ...]:
        """All types of operators; what takes most compile time, or most compiles, first."""
        compiles: dict[str, list[Compile]] = {}
        for compile_ in self.compiles:
            compiles.setdefault(compile_.operator, []).append(compile_)
        again: dict[str, int] = {}
        for compile_ in recompiles:
            again[compile_.operator] = again.get(compile_.operator, 0) + 1
        changing = frozenset(conversions)
        kinds = dict.fromkeys([*self.signatures, *compiles, *self.misses, *self.uncounted])
        found = [
            self._operator(kind, compiles.get(kind, []), again.get(kind, 0), kind in changing)
            for kind in kinds
        ]
        return tuple(
            sorted(found, key=lambda row: (-row.compile_seconds, -row.compiles, -row.calls, row.type))
        )

    def _operator(self, kind: str, compiles: list[Compile], again: int, is_conversion: bool) -> Operator:
        signatures = sorted(
            self.signatures.get(kind, ()), key=lambda row: (-row.compiles, -row.calls, row.text)
        )
        uncounted = self.uncounted.get(kind, 0)
        return Operator(
            kind,
            sum(signature.calls for signature in signatures) + uncounted,
            len(compiles),
            sum(compile_.seconds or 0.0 for compile_ in compiles),
            again,
            self.misses.get(kind, 0),
            tuple(signatures),
            is_conversion,
            uncounted,
        )


_CUT = Text(
    "{count} signatures were longer than a log line ({limit} characters): calls that differ only "
    "after that are counted as equal",
    "{count} 种签名超过日志行长（{limit} 个字符）：之后部分才有差别的调用被视为相同",
)
_NO_SECONDS = Text(
    "the log has no compile times; newer runtimes log them with {setting}",
    "日志没有编译用时；较新的运行时在 {setting} 下记录",
)
_MANY = Text(
    "too many different signatures; {count} calls were counted without their signatures",
    "签名种类过多；{count} 次调用只计数而未区分签名",
)
Show = Callable[[int, int], None]  # is told how many bytes of how many were read


def host_log_of(name: str | None, vendor_path: Sequence[Path] = ()) -> tuple[str, HostLog]:
    """The vendor whose logs these are; unless named, the only one of which the form of logs is known."""
    names = [name] if name else vendor_names(vendor_path)
    found = {each: load_host(Path(get_vendor(each, vendor_path).folder)).host_log for each in names}
    known = {each: log for each, log in found.items() if log is not None}
    if len(known) == 1:
        return next(iter(known.items()))
    if known:
        raise InputError(
            Text(
                f"the logs could be from several vendors; choose one with --to: {', '.join(known)}",
                f"日志可能来自多个厂商；请用 --to 指定：{', '.join(known)}",
            )
        )
    raise InputError(
        Text(
            f"the format of the host logs of {', '.join(names)} is unknown; see `ferry vendors`",
            f"{', '.join(names)} 的主机日志格式未知；见 `ferry vendors`",
        )
    )


def read_oplog(
    paths: Sequence[Path],
    vendor: str,
    log: HostLog,
    warm_up: WarmUp | None = None,
    show: Show | None = None,
) -> OpLog:
    """Read logs, and folders of logs, of one run."""
    files, unread = log_files(list(paths), log.skipped_folders)
    sizes = dict.fromkeys(files, 0)
    for file in files:
        with suppress(OSError):
            sizes[file] = file.stat().st_size
    progress = None if show is None else _adding(show, sum(sizes.values()))
    texts = [*log.operator, log.compile, *([log.miss] if log.miss else [])]
    marks = Marks(tuple(text.encode() for text in texts), len(log.operator), len(log.operator) + 1)
    counter = Counter(Forms(log), marks)
    for file in files:
        try:
            for hit in hits(file, marks.texts, progress):
                counter.add(hit)
        except OSError as error:
            unread[str(file)] = error.strerror or str(error)
    read = [file for file in files if str(file) not in unread]
    processes = counter.processes()
    if not processes:
        raise _nothing_found(paths, read, unread, log)
    counted = counter.results()
    chosen, basis, text = recompiles(counted.compiles, processes, warm_up or WarmUp())
    times = [entry.seconds for entry in counted.compiles if entry.seconds is not None]
    return OpLog(
        tuple(map(str, read)),
        vendor,
        counted.operators(chosen, log.conversions),
        chosen,
        basis,
        text,
        len(counted.compiles),
        sum(times) if times else None,
        processes,
        sum(sizes[file] for file in read),
        unread,
        tuple(_notes(counted, log, basis, bool(times))),
    )


def _adding(show: Show, total: int) -> Progress:
    done = 0

    def add(count: int) -> None:
        nonlocal done
        done += count
        show(done, total)

    return add


def _nothing_found(
    paths: Sequence[Path], read: list[Path], unread: dict[str, str], log: HostLog
) -> InputError:
    if not read:
        name, reason = next(iter(unread.items()))
        return InputError(
            Text(
                f"{name}: can't be read: {reason}; {len(unread)} unreadable in total, check their permissions",
                f"{name}：无法读取：{reason}；共有 {len(unread)} 个文件无法读取，请检查权限",
            )
        )
    settings = " ".join(log.settings)
    where = ", ".join(map(str, paths))
    return InputError(
        Text(
            f"{where}: no line about operators in {len(read)} files; the runtime logs them only on request: "
            f"export {settings}, run a few steps of the program, then unset them because logging is slow",
            f"{where}：{len(read)} 个文件中没有关于算子的行；运行时默认不记录：请 export {settings}，"
            "运行若干步，之后取消设置，因为写日志会变慢",
        )
    )


def _notes(counted: OperatorCounts, log: HostLog, basis: Basis, has_times: bool) -> list[Text]:
    cut = sum(signature.cut for rows in counted.signatures.values() for signature in rows)
    uncounted = sum(counted.uncounted.values())
    notes = [_CUT.format(count=cut, limit=log.line_limit)] if cut else []
    if counted.compiles and not has_times and log.settings:
        notes.append(_NO_SECONDS.format(setting=", ".join(log.settings)))
    if uncounted:
        notes.append(_MANY.format(count=uncounted))
    return notes
