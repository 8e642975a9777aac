"""What the processes of a run used of the device: each one's part, written when it ends, all of them merged, as text and as JSON."""

from __future__ import annotations

import atexit
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from torchferry import __version__
from torchferry.files.aside import write_whole
from torchferry.settings import decode, encode
from torchferry.text import Language, Text
from torchferry.units import size

BEGAN = ".began"
REPORTED = ".json"
MAX_OPERATORS = 20
_EMULATED = "emulated"

FALLS_BACK = "falls_back"
RAISES = "raises"
MISSING = "missing"  # the emulated toolkit has no such function

_HEAD = Text(
    "simulated {device} ({vendor}): {processes}",
    "模拟 {device}（{vendor}）：{processes}",
)
_HEAD_EMULATED = Text(
    "{vendor}'s own plugin on an emulated {device}: {processes}",
    "仿真 {device} 上的 {vendor} 官方插件：{processes}",
)
_PROCESSES = Text("processes that used it: {count}", "使用设备的进程：{count} 个")
_UNUSED = Text(
    "nothing ran on the device: the program put no tensor on it (perhaps it chose the CPU, for "
    "example by an option or a library's setting)",
    "没有任何计算在设备上运行：程序没有把张量放到设备上（它可能自行选择了 CPU，"
    "例如由某个选项或库的设置决定）",
)
_UNUSED_CONVERTED = Text(
    "nothing ran on the device: if the program is still written for CUDA, convert it with `ferry "
    "convert` or run it without --converted; if it is converted, it chose the CPU itself (an option, "
    "a library's setting)",
    "没有任何计算在设备上运行：若程序仍是为 CUDA 编写的，请先用 `ferry convert` 转换，或在运行时去掉 "
    "--converted；若已转换，则是程序自行选择了 CPU（某个选项，或库的设置）",
)
_UNREPORTED = Text(
    "processes killed before they could report, not counted here: {count}",
    "未及上报就被杀死、未计入的进程：{count} 个",
)
LEFT_RUNNING = Text(
    "processes that the program left running, now ended: {count}", "程序遗留、现已被结束的进程：{count} 个"
)
_MEMORY = Text(
    "peak memory of one process (allocated, reserved, limit):", "单个进程的内存峰值（已分配，已预留，上限）："
)
_DEVICE = Text(*["{device}:{index}  {allocated:>10}  {reserved:>10}  {limit:>10}"] * 2)
_FAILURES = Text("out-of-memory errors: {count}", "内存不足：{count} 次")
_FELL_BACK = Text("operators that fell back to the CPU, with counts:", "回退到 CPU 运行的算子及次数：")
_NONE_FELL_BACK = Text("operators that fell back to the CPU: none", "回退到 CPU 运行的算子：无")
_RAISED = Text("missing operators (they raised an error):", "缺失算子（已报错）：")
_FUNCTIONS = Text(
    "operator functions that the plugin called: {count} different ones, {calls} calls",
    "插件调用的算子函数：{count} 种，共 {calls} 次",
)
_MISSING = Text("missing operator functions:", "缺失的算子函数：")
_MORE = Text(
    "... and {count} more (all are in -o FILE.json)",
    "……另有 {count} 个（-o FILE.json 中有全部）",
)
_DTYPES = Text("narrowed or rejected dtypes, with counts:", "被收窄或被拒绝的数据类型及次数：")


@dataclass(frozen=True)
class DeviceUse:
    """What one process took of one device."""

    index: int
    peak_allocated: int
    peak_reserved: int
    limit: int
    allocations: int
    out_of_memory: int


@dataclass(frozen=True)
class OperatorCount:
    """How often an operator ran; support is kernel, falls_back, raises or unknown."""

    name: str
    calls: int
    support: str


@dataclass(frozen=True)
class SimulatedProcess:
    """What one process used."""

    pid: int
    rank: int | None  # as torchrun counts
    restart: int  # how often torchrun had started the program anew
    torch: str
    devices: tuple[DeviceUse, ...]
    operators: tuple[OperatorCount, ...]
    dtypes: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RunOutcome:
    """How the run itself went."""

    vendor: str
    device_type: str
    exit_code: int
    seconds: float
    left_running: int
    converted: bool = False  # without the layer
    means: str = "simulated"  # or emulated, real


@dataclass(frozen=True)
class RunSummary:
    """What a run used of its devices."""

    outcome: RunOutcome
    parts: tuple[SimulatedProcess, ...]
    unreported: int

    @property
    def devices(self) -> list[DeviceUse]:
        """Each device with the highest peak that one process reached, and the sum of the counts."""
        by_index: dict[int, list[DeviceUse]] = {}
        for part in self.parts:
            for use in part.devices:
                by_index.setdefault(use.index, []).append(use)
        return [
            DeviceUse(
                index=index,
                peak_allocated=max(use.peak_allocated for use in uses),
                peak_reserved=max(use.peak_reserved for use in uses),
                limit=max(use.limit for use in uses),
                allocations=sum(use.allocations for use in uses),
                out_of_memory=sum(use.out_of_memory for use in uses),
            )
            for index, uses in sorted(by_index.items())
        ]

    @property
    def operators(self) -> list[OperatorCount]:
        """Every operator with the calls of all processes, most called first."""
        calls: Counter[tuple[str, str]] = Counter()
        for part in self.parts:
            for operator in part.operators:
                calls[operator.name, operator.support] += operator.calls
        counts = [OperatorCount(name, count, support) for (name, support), count in calls.items()]
        return sorted(counts, key=lambda count: (-count.calls, count.name))

    @property
    def dtypes(self) -> dict[str, int]:
        """Every dtype that the vendor narrows or refuses, with the counts of all processes."""
        counts: Counter[str] = Counter()
        for part in self.parts:
            counts.update(dict(part.dtypes))
        return dict(counts.most_common())


def write_part(part: SimulatedProcess, path: Path) -> None:
    """Leave a process's part; it appears whole or not at all."""
    write_whole(path, encode(part).encode())


def read_parts(folder: Path) -> tuple[tuple[SimulatedProcess, ...], int]:
    """The parts that processes left, and how many processes began and left none."""
    parts = [decode(SimulatedProcess, path.read_bytes()) for path in sorted(folder.glob(f"*{REPORTED}"))]
    parts.sort(key=lambda part: (-1 if part.rank is None else part.rank, part.restart, part.pid))
    return tuple(parts), sum(1 for _ in folder.glob(f"*{BEGAN}"))


def to_json(summary: RunSummary) -> str:
    """The whole summary; docs/en/how-to/run.md describes the fields."""
    content = {
        "format": "torchferry-run",
        "version": 1,
        "torchferry": __version__,
        **asdict(summary.outcome),
        "devices": [asdict(use) for use in summary.devices],
        "operators": [asdict(operator) for operator in summary.operators],
        "dtypes": summary.dtypes,
        "unreported": summary.unreported,
        "processes": [{**asdict(part), "dtypes": dict(part.dtypes)} for part in summary.parts],
    }
    return json.dumps(content, indent=2) + "\n"


def to_text(summary: RunSummary, language: Language) -> str:
    """What the run prints at its end."""
    return "\n".join(f"torchferry: {line.in_language(language)}" for line in _lines(summary))


def _lines(summary: RunSummary) -> list[Text]:
    outcome = summary.outcome
    count = _PROCESSES.format(count=len(summary.parts))
    head = _HEAD_EMULATED if outcome.means == _EMULATED else _HEAD
    lines = [head.format(device=outcome.device_type, vendor=outcome.vendor, processes=count)]
    if summary.unreported:
        lines.append(_UNREPORTED.format(count=summary.unreported))
    if outcome.left_running:
        lines.append(LEFT_RUNNING.format(count=outcome.left_running))
    if summary.parts:
        return [*lines, *_use_lines(summary)]
    is_strange = not summary.unreported and not outcome.exit_code  # a program that failed has said why
    unused = _UNUSED_CONVERTED if outcome.converted else _UNUSED
    return [*lines, unused] if is_strange else lines


def _use_lines(summary: RunSummary) -> list[Text]:
    lines = [_MEMORY]
    for use in summary.devices:
        sizes = {
            "allocated": size(use.peak_allocated),
            "reserved": size(use.peak_reserved),
            "limit": size(use.limit),
        }
        device = _DEVICE.format(device=summary.outcome.device_type, index=use.index, **sizes)
        lines.append(_indented(device))
    failures = sum(use.out_of_memory for use in summary.devices)
    if failures:
        lines.append(_FAILURES.format(count=failures))
    if summary.outcome.means == _EMULATED:
        there = [function for function in summary.operators if function.support != MISSING]
        missing = [function for function in summary.operators if function.support == MISSING]
        calls = sum(function.calls for function in there)
        lines.append(_FUNCTIONS.format(count=len(there), calls=calls))
        return [*lines, _MISSING, *_operator_lines(missing)] if missing else lines
    fell_back = [operator for operator in summary.operators if operator.support == FALLS_BACK]
    lines += [_FELL_BACK, *_operator_lines(fell_back)] if fell_back else [_NONE_FELL_BACK]
    raised = [operator for operator in summary.operators if operator.support == RAISES]
    if raised:
        lines += [_RAISED, *_operator_lines(raised)]
    if summary.dtypes:
        lines += [_DTYPES, *_count_lines(summary.dtypes.items())]
    return lines


def _operator_lines(operators: Sequence[OperatorCount]) -> list[Text]:
    lines = _count_lines((operator.name, operator.calls) for operator in operators[:MAX_OPERATORS])
    hidden = len(operators) - MAX_OPERATORS
    return [*lines, _indented(_MORE.format(count=hidden))] if hidden > 0 else lines


def _count_lines(counts: Iterable[tuple[str, int]]) -> list[Text]:
    return [_indented(Text(f"{count:>9,}  {name}", f"{count:>9,}  {name}")) for name, count in counts]


def _indented(text: Text) -> Text:
    return Text(f"  {text.en}", f"  {text.zh}")


def report_at_exit(folder: Path, counters: Callable[[], SimulatedProcess | None] | None = None) -> None:
    """Note that this process began; when it ends by itself, leave what it used, or nothing if it used nothing.

    A fork of it leaves a part of its own, with what it has used since the fork. `counters` tell what was used of a
    device that is not the simulated one.
    """
    from torchferry.observe.patching import Patches
    from torchferry.observe.program import before_hard_exit

    with suppress(OSError):  # the launcher was killed, nobody will read it
        report = _PartReport(folder, counters or collect)
        atexit.register(report.write)
        before_hard_exit(Patches(), report.write)
        os.register_at_fork(before=report.before_fork, after_in_child=report.after_fork)


class _PartReport:
    def __init__(self, folder: Path, counters: Callable[[], SimulatedProcess | None]) -> None:
        self._folder = folder
        self._counters = counters
        self._inherited: SimulatedProcess | None = None
        self._began: Path | None = self._file(BEGAN)
        self._began.touch()
        self._written = False

    def before_fork(self) -> None:
        """What the parent has used is not the child's; the compiled half goes on counting from there."""
        self._at_fork = self._counters()

    def after_fork(self) -> None:
        self._inherited, self._began, self._written = self._at_fork, None, False

    def write(self) -> None:
        if self._written:
            return
        self._written = True
        part = since(self._inherited, self._counters())
        with suppress(OSError):
            if part is not None:
                write_part(part, self._file(REPORTED))
            if self._began is not None:
                self._began.unlink()

    def _file(self, suffix: str) -> Path:
        return self._folder / f"{os.getpid()}-{time.time_ns()}{suffix}"


def since(before: SimulatedProcess | None, now: SimulatedProcess | None) -> SimulatedProcess | None:
    """What was used between two looks at the same counters; None for nothing."""
    if before is None or now is None:
        return now
    known = {use.index: use for use in before.devices}
    devices = tuple(use for use in now.devices if use != known.get(use.index))
    calls = {operator.name: operator.calls for operator in before.operators}
    operators = tuple(
        replace(operator, calls=operator.calls - calls.get(operator.name, 0))
        for operator in now.operators
        if operator.calls > calls.get(operator.name, 0)
    )
    dtypes = tuple((Counter(dict(now.dtypes)) - Counter(dict(before.dtypes))).items())
    if not devices and not operators:
        return None
    return replace(now, devices=devices, operators=operators, dtypes=dtypes)


def collect() -> SimulatedProcess | None:
    """What this process has used so far; None if it never touched the device."""
    from torchferry.sim import native

    uses = [(index, native.memory_use(index)) for index in range(native.device_count())]
    devices = tuple(
        DeviceUse(
            index=index,
            peak_allocated=use.peak_allocated,
            peak_reserved=use.peak_reserved,
            limit=use.limit,
            allocations=use.allocations,
            out_of_memory=use.out_of_memory,
        )
        for index, use in uses
        if use.allocations or use.out_of_memory
    )
    operators = tuple(
        OperatorCount(use.name, use.calls, use.verdict.name.lower()) for use in native.operator_uses()
    )
    return used_by_this_process(devices, operators, tuple(native.narrowed_dtypes().items()))


def used_by_this_process(
    devices: tuple[DeviceUse, ...],
    operators: tuple[OperatorCount, ...],
    dtypes: tuple[tuple[str, int], ...] = (),
) -> SimulatedProcess | None:
    """The record of what was used; None for nothing."""
    if not devices and not operators:
        return None
    import torch

    rank, restart = (os.environ.get(name, "") for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))
    return SimulatedProcess(
        pid=os.getpid(),
        rank=int(rank) if rank.isdigit() else None,  # launchers set it
        restart=int(restart) if restart.isdigit() else 0,
        torch=str(torch.__version__),
        devices=devices,
        operators=operators,
        dtypes=dtypes,
    )
