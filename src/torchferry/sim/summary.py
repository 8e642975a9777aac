"""What the processes of a run used of the simulated device: one part per process, merged, as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torchferry import __version__
from torchferry.files.aside import write_whole
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
    "nothing ran on the device: the program put no tensor on it (it may choose the CPU by itself, for instance by an "
    "option or a library's setting)",
    "没有任何计算在设备上运行：程序没有把张量放到设备上（它可能自行选择了 CPU，例如由某个选项或库的设置决定）",
)
_UNUSED_CONVERTED = Text(
    "nothing ran on the device: if the program is still written for CUDA, convert it with `ferry convert` or run it "
    "without --converted; if it is converted, it chose the CPU by itself (an option, a library's setting)",
    "没有任何计算在设备上运行：若程序仍是为 CUDA 编写的，请先用 ferry convert 转换，或在运行时去掉 --converted；"
    "若已转换，则是程序自行选择了 CPU（某个选项，或库的设置）",
)
_UNREPORTED = Text(
    "processes that were killed before they could report, not counted here: {count}",
    "未及上报就被杀死、未计入的进程：{count} 个",
)
LEFT_RUNNING = Text(
    "processes that the program left running, now ended: {count}", "程序遗留、现已被结束的进程：{count} 个"
)
_MEMORY = Text(
    "peak memory of one process (allocated, reserved, limit):", "单个进程的内存峰值（已分配，已预留，上限）："
)
_DEVICE = Text(*["{device}:{index}  {allocated:>10}  {reserved:>10}  {limit:>10}"] * 2)
_FAILURES = Text("times that memory ran out: {count}", "内存不足：{count} 次")
_FELL_BACK = Text("operators that ran on the CPU, and how often:", "回退到 CPU 运行的算子及次数：")
_NONE_FELL_BACK = Text("operators that ran on the CPU: none", "回退到 CPU 运行的算子：无")
_RAISED = Text("operators that the device does not have (they raised):", "设备没有、因而报错的算子：")
_FUNCTIONS = Text(
    "functions of operators that the plugin called: {count} different ones, {calls} calls",
    "插件调用的算子函数：{count} 种，共 {calls} 次",
)
_MISSING = Text("functions of operators that are not there yet:", "尚不具备的算子函数：")
_MORE = Text(
    "... and {count} more (--summary FILE.json has all)", "……另有 {count} 个（--summary FILE.json 中有全部）"
)
_DTYPES = Text("dtypes narrowed or refused, and how often:", "被收窄或被拒绝的数据类型及次数：")


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
    """A whole run."""

    outcome: RunOutcome
    parts: tuple[SimulatedProcess, ...]
    unreported: int

    @property
    def devices(self) -> list[DeviceUse]:
        """Each device with the highest peak that one process reached, and the sum of the counts."""
        uses = [use for part in self.parts for use in part.devices]
        return [
            _merged([use for use in uses if use.index == index])
            for index in sorted({use.index for use in uses})
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


def _merged(uses: Sequence[DeviceUse]) -> DeviceUse:
    return DeviceUse(
        index=uses[0].index,
        peak_allocated=max(use.peak_allocated for use in uses),
        peak_reserved=max(use.peak_reserved for use in uses),
        limit=max(use.limit for use in uses),
        allocations=sum(use.allocations for use in uses),
        out_of_memory=sum(use.out_of_memory for use in uses),
    )


def write_part(part: SimulatedProcess, path: Path) -> None:
    """Leave a process's part; it appears whole or not at all."""
    write_whole(path, json.dumps(asdict(part)).encode())


def read_parts(folder: Path) -> tuple[tuple[SimulatedProcess, ...], int]:
    """The parts that processes left, and how many processes began and left none."""
    parts = [_part(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob(f"*{REPORTED}"))]
    parts.sort(key=lambda part: (-1 if part.rank is None else part.rank, part.restart, part.pid))
    return tuple(parts), sum(1 for _ in folder.glob(f"*{BEGAN}"))


def _part(record: dict[str, Any]) -> SimulatedProcess:
    read = {
        "devices": tuple(DeviceUse(**use) for use in record["devices"]),
        "operators": tuple(OperatorCount(**count) for count in record["operators"]),
        "dtypes": tuple((name, count) for name, count in record["dtypes"]),
    }
    return SimulatedProcess(**{**record, **read})


def to_json(summary: RunSummary) -> str:
    """The whole summary; docs/en/run.md describes the fields."""
    content = {
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
    lines = [_MEMORY, *(_indented(_device_line(summary.outcome.device_type, use)) for use in summary.devices)]
    failures = sum(use.out_of_memory for use in summary.devices)
    if failures:
        lines.append(_FAILURES.format(count=failures))
    if summary.outcome.means == _EMULATED:
        return [*lines, *_function_lines(summary.operators)]
    fell_back = [operator for operator in summary.operators if operator.support == FALLS_BACK]
    lines += [_FELL_BACK, *_operator_lines(fell_back)] if fell_back else [_NONE_FELL_BACK]
    raised = [operator for operator in summary.operators if operator.support == RAISES]
    if raised:
        lines += [_RAISED, *_operator_lines(raised)]
    if summary.dtypes:
        lines += [_DTYPES, *_count_lines(summary.dtypes.items())]
    return lines


def _function_lines(functions: Sequence[OperatorCount]) -> list[Text]:
    there = [function for function in functions if function.support != MISSING]
    missing = [function for function in functions if function.support == MISSING]
    calls = sum(function.calls for function in there)
    lines = [_FUNCTIONS.format(count=len(there), calls=calls)]
    return [*lines, _MISSING, *_operator_lines(missing)] if missing else lines


def _device_line(device_type: str, use: DeviceUse) -> Text:
    sizes = {
        "allocated": size(use.peak_allocated),
        "reserved": size(use.peak_reserved),
        "limit": size(use.limit),
    }
    return _DEVICE.format(device=device_type, index=use.index, **sizes)


def _operator_lines(operators: Sequence[OperatorCount]) -> list[Text]:
    lines = _count_lines((operator.name, operator.calls) for operator in operators[:MAX_OPERATORS])
    hidden = len(operators) - MAX_OPERATORS
    return [*lines, _indented(_MORE.format(count=hidden))] if hidden > 0 else lines


def _count_lines(counts: Iterable[tuple[str, int]]) -> list[Text]:
    return [_indented(Text(f"{count:>9,}  {name}", f"{count:>9,}  {name}")) for name, count in counts]


def _indented(text: Text) -> Text:
    return Text(f"  {text.en}", f"  {text.zh}")
