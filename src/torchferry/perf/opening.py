"""From the files and folders that a user names to runs: one for each process, with all that belongs to it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torchferry.errors import InputError, not_readable
from torchferry.logs import log_files
from torchferry.perf.model import PROFILE_FILE, PROFILE_FORMAT, PROFILE_VERSION
from torchferry.perf.run import Run
from torchferry.perf.tables.columns import CsvFile
from torchferry.perf.tables.kernels import is_kernel_statistic, is_kernel_table, read_kernels
from torchferry.perf.tables.memory import is_memory_record, is_operator_memory, read_memory
from torchferry.perf.tables.operators import is_operator_details, is_step_table, read_operators, read_steps
from torchferry.report.progress import Show
from torchferry.text import Text, then
from torchferry.traces.chunks import unpacked
from torchferry.traces.columns import INVALID
from torchferry.traces.model import Trace
from torchferry.traces.names import CUDA
from torchferry.traces.reader import read_trace
from torchferry.vendors.registry import get_vendor, vendor_names, vendor_of_device

WHAT_TO_GIVE = Text(
    "give a trace (.json, .json.gz), a profiler's folder, kernel_details.csv, operator_memory.csv, a printed table of "
    "operators, or host logs",
    "请给出 trace（.json、.json.gz）、profiler 的文件夹、kernel_details.csv、operator_memory.csv、打印的算子表或主机日志",
)
_HEAD = 1 << 16
_TRACE = re.compile(rb'"traceEvents"\s*:\s*\[')
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
_RULE = re.compile(rb"^\s*-{3,}(?:\s+-{3,})+\s*$", re.MULTILINE)
_LOG_NAME = re.compile(r"\.(?:log|out)(?:\.\d+)?(?:\.gz)?$")
_RAW = re.compile(r"PROF_")  # folders of a profiler's raw data, beside those of what was made of it
_RANK_FILE = re.compile(r"profiler_info_(\d+)\.json$")
_RANK_IN_NAME = re.compile(r"(?<![a-z])rank[_-]?(\d+)(?![0-9])", re.IGNORECASE)
_DEEPEST = 6  # folders


class InputKind(Enum):
    """What a file is."""

    TRACE = "trace"
    KERNELS = "kernels"
    STATISTIC = "types of kernels"
    MEMORY = "memory of operators"
    MEMORY_RECORD = "memory"
    OPERATORS = "operators"
    STEPS = "steps"
    LOG = "host log"
    PROFILE = "record of `ferry profile`"


_TABLES = (
    (is_operator_memory, InputKind.MEMORY),
    (is_memory_record, InputKind.MEMORY_RECORD),
    (is_operator_details, InputKind.OPERATORS),
    (is_kernel_statistic, InputKind.STATISTIC),
    (is_step_table, InputKind.STEPS),
    (is_kernel_table, InputKind.KERNELS),
)


@dataclass
class FileSet:
    """Files that lie together: those of one process, but for folders with several traces."""

    folder: Path
    files: dict[InputKind, list[Path]] = field(default_factory=dict)

    def add(self, sort: InputKind, path: Path) -> None:
        """Add a file of a sort."""
        self.files.setdefault(sort, []).append(path)

    def of(self, sort: InputKind) -> list[Path]:
        """The files of a sort."""
        return self.files.get(sort, [])

    @property
    def tables(self) -> list[Path]:
        """All files but the traces."""
        return [path for sort in InputKind if sort is not InputKind.TRACE for path in self.of(sort)]

    @property
    def rank(self) -> int | None:
        """The number of the process, by the file that a vendor's profiler puts beside its results, or by the folders' names."""
        for folder in (self.folder, self.folder.parent):
            for name in sorted(_names(folder)):
                if found := _RANK_FILE.match(name):
                    return int(found[1])
        found = _RANK_IN_NAME.search(self.folder.name) or _RANK_IN_NAME.search(self.folder.parent.name)
        return int(found[1]) if found else None


def sort_of(path: Path) -> InputKind | None:
    """What a file is; None: nothing that an analysis can read."""
    try:
        with path.open("rb") as file:
            head = unpacked(file).read(_HEAD).lstrip(_BEFORE_JSON)
    except OSError as error:
        raise not_readable(repr(str(path)), error) from None
    if head[:1] in (b"{", b"["):
        if path.name == PROFILE_FILE and PROFILE_FORMAT.encode() in head:
            return InputKind.PROFILE
        is_list = head[:1] == b"[" and head[1:].lstrip()[:1] == b"{" and b'"ph"' in head
        return InputKind.TRACE if is_list or _TRACE.search(head) else None
    if ".csv" in path.suffixes:
        table = CsvFile(path)
        return next((sort for is_such, sort in _TABLES if is_such(table)), None)
    if _RULE.search(head) and b"Name" in head:
        return InputKind.OPERATORS
    return InputKind.LOG if _LOG_NAME.search(path.name) else None


def sets_below(folder: Path) -> list[FileSet]:
    """The sets of files in a folder and the folders in it, without a profiler's raw data where its results are there."""
    found = [files for each in _folders(folder, 0) if (files := _set_in(each)).files]
    results = {files.folder for files in found if not _raw_parent(files.folder)}
    return [
        files
        for files in found
        if (above := _raw_parent(files.folder)) is None
        or not any(each.is_relative_to(above) for each in results)
    ]


def profile_facts(path: Path) -> dict[str, Any]:
    """The record that `ferry profile` wrote beside its traces."""
    try:
        read = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise not_readable(repr(str(path)), str(error), Text("profile again", "请重新采集")) from None
    if not isinstance(read, dict) or read.get("format") != PROFILE_FORMAT:
        raise InputError(
            Text(
                f"{str(path)!r} was not written by `ferry profile`",
                f"{str(path)!r} 不是 `ferry profile` 写入的文件",
            )
        )
    if read.get("version") != PROFILE_VERSION:
        raise InputError(
            Text(
                f"{str(path)!r} has version {read.get('version')!r}; update TorchFerry to read it",
                f"{str(path)!r} 的版本为 {read.get('version')!r}；请升级 TorchFerry 后再读取",
            )
        )
    return read


def _set_in(folder: Path) -> FileSet:
    files = FileSet(folder)
    for name in sorted(_names(folder)):
        path = folder / name
        if path.suffix in (".json", ".csv", ".gz", ".txt") and path.is_file():
            sort = sort_of(path)
            if sort not in (None, InputKind.LOG):
                files.add(sort, path)
    return files


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    yield folder
    if depth == _DEEPEST:
        return
    for name in sorted(_names(folder)):
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            yield from _folders(path, depth + 1)


def _raw_parent(folder: Path) -> Path | None:
    """The folder that the raw data of a profiler lie in, of a folder in it."""
    return next((each.parent for each in (folder, *folder.parents) if _RAW.match(each.name)), None)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


# Whether what was given belongs to one run: traces of different runs must not be added up.

CHOOSE = Text(
    "give the files of one run, or compare two runs with --baseline A B",
    "请给出同一次运行的文件，或用 --baseline A B 比较两次运行",
)
_SINCE_1970 = 10**17  # nanoseconds; clocks below it began with the machine, and can't be compared with others
# Nanoseconds that the clocks of two machines, or the starts of two processes, may differ.
_MOST_APART = 60 * 10**9


class _TraceIdentity(NamedTuple):
    source: str
    device: str
    rank: int | None
    process: str
    id: str
    span: tuple[int, int]


def check_one_run(runs: Sequence[Run]) -> None:
    """InputError if there are two that can't be processes of the same run."""
    traced = [(run.profile, _identity(run, run.trace)) for run in runs if run.trace is not None]
    for (profile, first), (other_profile, second) in combinations(traced, 2):
        if profile and profile is other_profile:  # the record of the run says that they belong together
            continue
        if problem := _apart(first, second):
            both = Text("{first!r} and {second!r} {problem}", "{first!r} 与 {second!r} {problem}")
            raise InputError(
                then(both.format(first=first.source, second=second.source, problem=problem), CHOOSE)
            )


def check_joined(run: Run) -> None:
    """InputError if the tables of a run are not of the time, or not of the device, of its trace."""
    trace = run.trace
    if trace is None:
        return
    span = _span(trace)
    for table, first, last in _table_spans(run):
        if min(first, span[0]) > _SINCE_1970 and (first > span[1] or last < span[0]):
            gap = _seconds_between(span, (first, last))
            both = Text(
                "{trace!r} and {table!r} belong to different runs: {gap}",
                "{trace!r} 与 {table!r} 属于不同的运行：{gap}",
            )
            raise InputError(then(both.format(trace=trace.path, table=table, gap=gap), CHOOSE))
    if run.memory is not None and trace.device_type != "cpu":
        types = {device.partition(":")[0] for device in run.memory.curves} - {"", "cpu"}
        if types and trace.device_type not in types:
            memory, others = run.memory.paths[0], ", ".join(sorted(types))
            both = Text(
                f"{trace.path!r} is from the device {trace.device_type!r}, {memory!r} from {others!r}: different runs",
                f"{trace.path!r} 来自设备 {trace.device_type!r}，{memory!r} 来自 {others!r}：属于不同的运行",
            )
            raise InputError(then(both, CHOOSE))


def _identity(run: Run, trace: Trace) -> _TraceIdentity:
    # The process that calls most operators.
    threads = np.bincount(trace.host.thread)
    process = trace.threads[int(threads.argmax())].process if len(threads) else ""
    trace_id = str(trace.about.get("trace_id", ""))
    return _TraceIdentity(trace.path, run.device, run.rank, process, trace_id, _span(trace))


def _apart(first: _TraceIdentity, second: _TraceIdentity) -> Text | None:
    """Why they can't belong to one run; None: they can."""
    if first.device != second.device:
        devices = f"{first.device}, {second.device}"
        return Text(f"are from different devices ({devices})", f"来自不同的设备（{devices}）")
    has_ranks = first.rank is not None and second.rank is not None
    if has_ranks and first.rank == second.rank:
        return Text(
            f"are both from rank {first.rank}: two runs, or two windows of one",
            f"都来自 rank {first.rank}：是两次运行，或同一次运行的两个窗口",
        )
    if not has_ranks and first.process == second.process:
        if first.id and first.id == second.id:
            return Text("are the same trace", "是同一份 trace")
        return Text(
            f"are both from process {first.process}: two runs, or two windows of one",
            f"都来自进程 {first.process}：是两次运行，或同一次运行的两个窗口",
        )
    gap = max(first.span[0], second.span[0]) - min(first.span[1], second.span[1])
    if min(first.span[0], second.span[0]) > _SINCE_1970 and gap > _MOST_APART:
        seconds = _seconds_between(first.span, second.span)
        return Text("belong to different runs: {gap}", "属于不同的运行：{gap}").format(gap=seconds)
    return None


def _seconds_between(first: tuple[int, int], second: tuple[int, int]) -> Text:
    gap = (max(first[0], second[0]) - min(first[1], second[1])) / 1e9
    return Text(f"they are {gap:,.1f} seconds apart", f"两者相隔 {gap:,.1f} 秒")


def _span(trace: Trace) -> tuple[int, int]:
    """When a trace begins and ends, by the clock of the world if the file tells it."""
    base = trace.about.get("baseTimeNanoseconds")
    origin = trace.origin + (base if isinstance(base, int) else 0)
    return origin + trace.span[0], origin + trace.span[1]


def _table_spans(run: Run) -> list[tuple[str, int, int]]:
    spans = []
    if run.kernels is not None and any(run.kernels.span):
        spans.append((run.kernels.path, *run.kernels.span))
    if run.memory is not None:
        known = [run.memory.start, run.memory.end, *(curve.start for curve in run.memory.curves.values())]
        times = np.concatenate(known)
        times = times[times != INVALID]
        if len(times):
            spans.append((run.memory.paths[0], int(times.min()), int(times.max())))
    return spans


_WITHOUT_TRACE = Text(
    "{folder}: rank {rank} left no trace and was not analyzed.",
    "{folder}：rank {rank} 没有留下 trace，未予分析。",
)
_LOGS_WITH_FIRST = Text(
    "The host logs cover all processes; they are shown with the first one.",
    "主机日志属于所有进程，与第一个进程一起显示。",
)
_NO_VENDORS = ("", "cpu", CUDA)
_ONE_TABLE = {  # of which a process has one
    InputKind.KERNELS: Text("a table of kernels", "kernel 表"),
    InputKind.MEMORY: Text("a table of operators' memory", "算子内存表"),
    InputKind.MEMORY_RECORD: Text("a record of memory", "内存记录"),
    InputKind.STEPS: Text("a table of steps", "步骤表"),
}


def open_runs(paths: Sequence[Path], on_progress: Show | None = None) -> list[Run]:
    """InputError for what can't be read or is of several runs: nothing is ever mixed or left out without a word."""
    opening = _Opening(on_progress or (lambda *_: None))
    for path in paths:
        opening.add(path)
    return opening.runs()


class _Opening:
    """The files that were named so far, by what is to be done with them."""

    def __init__(self, on_progress: Show) -> None:
        self._on_progress = on_progress
        self._sets: list[FileSet] = []
        self._named = FileSet(Path())  # files that were named themselves
        self._profiles: list[Path] = []
        self._logs: list[Path] = []

    def add(self, path: Path) -> None:
        if path.is_dir():
            self._add_folder(path)
            return
        if not path.exists():
            raise InputError(
                Text(f"no such file or folder: {str(path)!r}", f"没有该文件或文件夹：{str(path)!r}")
            )
        if not path.is_file():  # it is read more than once
            raise InputError(
                Text(
                    f"{str(path)!r} is a pipe or a device; save its content to a file first",
                    f"{str(path)!r} 是管道或设备；请先将其内容存为文件",
                )
            )
        sort = sort_of(path)
        if sort is None:
            unknown = Text(f"{str(path)!r} can't be analyzed", f"{str(path)!r} 无法分析")
            raise InputError(then(unknown, WHAT_TO_GIVE))
        if sort is InputKind.PROFILE:
            self._profiles.append(path)
        elif sort is InputKind.LOG:
            self._logs.append(path)
        else:
            self._named.add(sort, path)

    def _add_folder(self, folder: Path) -> None:
        if (folder / PROFILE_FILE).is_file() and sort_of(folder / PROFILE_FILE) is InputKind.PROFILE:
            self._profiles.append(folder / PROFILE_FILE)
        elif sets := sets_below(folder):
            self._profiles += [path for files in sets for path in files.of(InputKind.PROFILE)]
            self._sets += [files for files in sets if not files.of(InputKind.PROFILE)]
        elif _holds_logs(folder):
            self._logs.append(folder)
        else:
            empty = Text(
                f"{str(folder)!r} holds no trace, table or log", f"{str(folder)!r} 中没有 trace、表格或日志"
            )
            raise InputError(then(empty, WHAT_TO_GIVE))

    def runs(self) -> list[Run]:
        if len(self._profiles) > 1:
            first, second = self._profiles[:2]
            both = Text(
                f"{first} and {second} belong to different runs", f"{first} 与 {second} 属于不同的运行"
            )
            raise InputError(then(both, CHOOSE))
        runs = [run for path in self._profiles for run in self._of_profile(path)]
        runs += [run for files in self._all_sets() for run in self._of_set(files)]
        for run in runs:
            check_joined(run)
        check_one_run(runs)
        _check_bare(runs)
        for run in runs:
            _finish(run)
        if self._logs:
            runs = self._with_logs(runs)
        return sorted(runs, key=_order)

    def _all_sets(self) -> list[FileSet]:
        """Named files go with each other, and tables among them with the one folder that was named."""
        named = self._named
        if not named.files:
            return self._sets
        if (
            len(self._sets) == 1
            and not named.of(InputKind.TRACE)
            and not named.files.keys() & self._sets[0].files.keys()
        ):
            return [FileSet(self._sets[0].folder, {**self._sets[0].files, **named.files})]
        return [named, *self._sets]

    def _of_profile(self, path: Path) -> list[Run]:
        facts = profile_facts(path)
        ranks = [each for each in facts.get("ranks") or [] if isinstance(each, dict)]
        traced = [(each, files) for each in ranks if (files := _traced(path.parent, each.get("trace")))]
        if not traced:
            raise InputError(
                Text(
                    f"{str(path.parent)!r}: all of its traces are missing; profile again",
                    f"{str(path.parent)!r}：其中的 trace 均已丢失；请重新采集",
                )
            )
        lost = [
            _WITHOUT_TRACE.format(folder=path.parent.name, rank=each.get("rank"))
            for each in ranks
            if not any(each is known for known, _ in traced)
        ]
        runs = [self._run(files.of(InputKind.TRACE)[0], facts, each) for each, files in traced]
        for run, (_, files) in zip(runs, traced, strict=True):
            self._add_tables(run, files)
        runs[0].notes.extend(lost)
        return runs

    def _of_set(self, files: FileSet) -> list[Run]:
        traces, tables = files.of(InputKind.TRACE), files.tables
        if len(traces) > 1 and tables:
            raise InputError(
                Text(
                    f"{str(tables[0])!r} lies beside {len(traces)} traces; give it together with the trace it belongs to",
                    f"{str(tables[0])!r} 旁边有 {len(traces)} 份 trace；请将其与对应的 trace 一起给出",
                )
            )
        for sort in _ONE_TABLE:
            if len(several := files.of(sort)) > 1:
                one, other = str(several[0]), str(several[1])
                both = Text("{one!r} and {other!r} are each {what}", "{one!r} 与 {other!r} 都是{what}")
                raise InputError(then(both.format(one=one, other=other, what=_ONE_TABLE[sort]), CHOOSE))
        known = {} if files is self._named or len(traces) > 1 or files.rank is None else {"rank": files.rank}
        runs = [self._run(trace, {}, dict(known)) for trace in traces] or [Run((), rank_facts=known)]
        if tables:
            self._add_tables(runs[0], files)
        return runs

    def _begin(self, path: Path) -> None:
        self._on_progress(0, path.stat().st_size, path.name)

    def _run(self, path: Path, profile: dict[str, Any], facts: dict[str, Any]) -> Run:
        size = path.stat().st_size
        trace = read_trace(path, lambda done: self._on_progress(done, size, path.name))
        # names of frames begin in the folder of the script that was profiled
        command = profile.get("command")
        script = command[0] if isinstance(command, list) and command else ""
        if isinstance(script, str) and script.endswith(".py"):
            trace.source_folders = (Path(script).parent,)
        return Run((str(path),), trace, profile=profile, rank_facts=facts, notes=list(trace.notes))

    def _add_tables(self, run: Run, files: FileSet) -> None:
        kernels = files.of(InputKind.KERNELS) or (
            [] if run.trace is not None else files.of(InputKind.STATISTIC)
        )
        for path in kernels:
            self._begin(path)
            run.kernels = read_kernels(path)
            run.notes.extend(run.kernels.notes)
        memory, record = (
            next(iter(files.of(sort)), None) for sort in (InputKind.MEMORY, InputKind.MEMORY_RECORD)
        )
        if memory is not None or record is not None:
            self._begin(memory or record or Path())
            run.memory = read_memory(memory, record)
            run.notes.extend(run.memory.notes)
        for path in files.of(InputKind.STEPS):
            run.step_table = read_steps(path)
        if several := [*files.of(InputKind.OPERATORS), *files.of(InputKind.STATISTIC)]:
            tables = [read_operators(path) for path in several]
            run.operators = max(tables, key=lambda table: table.has_host_time)
        run.sources = (*run.sources, *map(str, files.tables))

    def _with_logs(self, runs: list[Run]) -> list[Run]:
        for path in self._logs:
            self._begin(path)
        from torchferry.perf.oplog.reading import host_log_of, read_oplog

        name, log = host_log_of(None)
        oplog = read_oplog(self._logs, name, log)
        if not runs:
            return [Run(oplog.sources, oplog=oplog, vendor=get_vendor(name), notes=list(oplog.notes))]
        vendor = runs[0].vendor
        if vendor is not None and vendor.name != name:
            both = Text(
                f"{runs[0].sources[0]!r} is from {vendor.name}, the logs in {str(self._logs[0])!r} are from {name}",
                f"{runs[0].sources[0]!r} 来自 {vendor.name}，{str(self._logs[0])!r} 中的日志来自 {name}",
            )
            raise InputError(then(both, CHOOSE))
        first = min(runs, key=_order)
        first.oplog = oplog
        first.sources = (*first.sources, *map(str, self._logs))
        first.notes.extend(oplog.notes)
        if len(runs) > 1:
            first.notes.append(_LOGS_WITH_FIRST)
        return runs


def _traced(folder: Path, name: object) -> FileSet | None:
    """What a process has left: a trace, or the folder of a vendor's own profiler with tables beside it."""
    place = folder / str(name or ".json")
    if place.is_file():
        return FileSet(place.parent, {InputKind.TRACE: [place]})
    return next((files for files in sets_below(place) if files.of(InputKind.TRACE)), None)


def _holds_logs(folder: Path) -> bool:
    try:
        return bool(log_files([folder], "")[0])
    except InputError:
        return False


def _check_bare(runs: Sequence[Run]) -> None:
    """Tables without a trace do not tell which run they are of: only ranks of one folder go together."""
    bare = [run for run in runs if run.trace is None]
    ranks = {run.rank for run in runs}
    if bare and len(runs) > 1 and (None in ranks or len(ranks) < len(runs)):
        other = next(run for run in runs if run is not bare[0])
        unclear = Text(
            f"{bare[0].sources[0]!r} does not tell whether it belongs to the same run as {other.sources[0]!r}",
            f"无法确定 {bare[0].sources[0]!r} 与 {other.sources[0]!r} 是否属于同一次运行",
        )
        raise InputError(then(unclear, CHOOSE))


def _finish(run: Run) -> None:
    """Times since the run's beginning; whose device it is."""
    if run.memory is not None:
        run.memory = run.memory.since(run.trace.origin if run.trace is not None else run.memory.first)
    named = run.profile.get("vendor")
    if isinstance(named, str):
        run.vendor = get_vendor(named) if named in vendor_names() else None
    elif (device := _device(run)) not in _NO_VENDORS:  # to read all vendors' data takes a while
        run.vendor = vendor_of_device(device)


def _device(run: Run) -> str:
    if run.device or run.memory is None:
        return run.device or (run.operators.device if run.operators is not None else "")
    return next((device.partition(":")[0] for device in run.memory.curves), "")


def _order(run: Run) -> int:
    return run.rank or 0
