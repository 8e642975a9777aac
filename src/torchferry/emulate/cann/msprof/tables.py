"""The tables of a profile, with the columns of the toolkit's."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import pvariance

from torchferry.emulate.cann.msprof.collectives import collective_of
from torchferry.emulate.cann.msprof.kernels import KernelTensor
from torchferry.emulate.cann.msprof.records import COMMUNICATION, KERNEL, MARKS, Profile, StreamTask

NO_MODEL = 4294967295
UNKNOWN = "N/A"
_OF_SHAPES = (
    "Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats",
)  # fmt: skip
_TASK_KINDS = {"AI_CORE": "KERNEL_AICORE", "MIX_AIC": "KERNEL_MIX_AIC", "AI_VECTOR_CORE": "KERNEL_AIVEC"}


@dataclass(frozen=True)
class CsvTable:
    """One CSV file."""

    columns: Sequence[str]
    rows: list[Sequence[object]]

    def write(self, path: Path) -> None:
        """Whole or not at all: somebody waits for it."""
        aside = path.with_name(f".{path.name}")
        with aside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        aside.replace(path)


def all_tables(profile: Profile) -> dict[str, CsvTable]:
    """File name -> table."""
    return {
        "op_summary": op_summary(profile),
        "op_statistic": op_statistic(profile),
        "api_statistic": api_statistic(profile),
        "task_time": task_time(profile),
        "npu_mem": npu_mem(profile),
        **(
            {"communication_statistic": communication_statistic(profile)}
            if _of(profile, COMMUNICATION)
            else {}
        ),
    }


def op_summary(profile: Profile) -> CsvTable:
    """One row per kernel or collective."""
    columns = [
        "Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type", "Task Start Time(us)",
        "Task Duration(us)", "Task Wait Time(us)", "Block Num", "Mix Block Num", "HF32 Eligible",
    ]  # fmt: skip
    shapes = _OF_SHAPES if profile.with_shapes else ()
    last: dict[int, int] = {}
    rows: list[Sequence[object]] = []
    for task in _of(profile, KERNEL, COMMUNICATION):
        before = last.get(task.device, task.start)
        last[task.device] = max(before, task.end)
        times = (
            f"{microseconds(task.start)}\t",
            microseconds(task.duration),
            microseconds(max(task.start - before, 0)),
        )
        rows.append(
            [*_identity(task), *times, *_blocks(task), *(_texts_of_tensors(task) if shapes else ()), UNKNOWN]
        )
    return CsvTable([*columns, *shapes, "Context ID"], rows)


def _identity(task: StreamTask) -> Sequence[object]:
    if task.kind == COMMUNICATION:
        collective = collective_of(task)
        return (
            task.device,
            NO_MODEL,
            UNKNOWN,
            UNKNOWN,
            collective.name,
            collective.type,
            UNKNOWN,
            COMMUNICATION,
        )
    kernel = task.kernel
    return task.device, NO_MODEL, task.number, task.stream, kernel.name, kernel.type, "dynamic", kernel.core


def _blocks(task: StreamTask) -> Sequence[object]:
    """One CPU computes all of it: cores are not divided."""
    return (0, 0, UNKNOWN) if task.kind == COMMUNICATION else (1, 0, "NO")


def _texts_of_tensors(task: StreamTask) -> list[str]:
    if task.kind == COMMUNICATION:
        return [UNKNOWN] * len(_OF_SHAPES)
    ins, outs = task.tensors
    return [text for tensors in (ins, outs) for text in _texts(tensors)]


def _texts(tensors: Sequence[KernelTensor]) -> Iterator[str]:
    yield f'"{";".join(tensor.shape for tensor in tensors)}"'  # quoted twice, as the toolkit's are
    yield ";".join(tensor.dtype for tensor in tensors)
    yield ";".join(tensor.format for tensor in tensors)


def op_statistic(profile: Profile) -> CsvTable:
    """One row per type of kernel."""
    columns = [
        "Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)",
        "Ratio(%)",
    ]  # fmt: skip
    kernels = _of(profile, KERNEL)
    return CsvTable(columns, _grouped(kernels, lambda task: (task.kernel.type, task.kernel.core)))


def communication_statistic(profile: Profile) -> CsvTable:
    """One row per type of collective."""
    columns = [
        "Device_id", "OP Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)", "Ratio(%)",
    ]  # fmt: skip
    return CsvTable(columns, _grouped(_of(profile, COMMUNICATION), lambda task: (collective_of(task).type,)))


def _grouped(
    tasks: Iterable[StreamTask], key: Callable[[StreamTask], tuple[str, ...]]
) -> list[Sequence[object]]:
    durations: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for task in tasks:
        group = (task.device, *key(task))
        durations[group].append(task.duration)
    totals: dict[object, int] = defaultdict(int)
    for group, times in durations.items():
        totals[group[0]] += sum(times)
    ordered = sorted(durations.items(), key=lambda item: -sum(item[1]))
    return [
        [*group, *_statistic(times), f"{100 * sum(times) / max(totals[group[0]], 1):.3f}"]
        for group, times in ordered
    ]


def _statistic(times: list[int]) -> list[object]:
    average = sum(times) / len(times)
    return [
        len(times),
        microseconds(sum(times)),
        microseconds(min(times)),
        f"{average / 1000:.3f}",
        microseconds(max(times)),
    ]


def api_statistic(profile: Profile) -> CsvTable:
    """One row per function that was called on the host, and one for launching kernels."""
    columns = [
        "Device_id", "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance",
    ]  # fmt: skip
    durations: dict[tuple[str, str], list[int]] = defaultdict(list)
    for call in profile.calls:
        durations["AscendCL", call.name].append(call.end - call.start)
    for task in _of(profile, KERNEL, COMMUNICATION):
        level = "Node" if task.kind == KERNEL else "Communication"
        durations[level, "launch"].append(task.call_ended - task.called)
    ordered = sorted(durations.items(), key=lambda item: -sum(item[1]))
    rows: list[Sequence[object]] = []
    for (level, name), times in ordered:
        count, total, least, average, most = _statistic(times)
        variance = pvariance([time / 1000 for time in times])
        rows.append(["host", level, name, total, count, average, least, most, f"{variance:.3f}"])
    return CsvTable(columns, rows)


def task_time(profile: Profile) -> CsvTable:
    """One row per task of a stream."""
    columns = [
        "Device_id", "kernel_name", "kernel_type", "stream_id", "task_id", "task_time(us)", "task_start(us)", "task_stop(us)",
    ]  # fmt: skip
    rows: list[Sequence[object]] = []
    for task in profile.tasks:
        if task.kind in MARKS:
            continue
        name, kind = (
            (task.kernel.name, _TASK_KINDS[task.kernel.core])
            if task.kind == KERNEL
            else (UNKNOWN, task_type(task))
        )
        times = (microseconds(task.duration), f"{microseconds(task.start)}\t", f"{microseconds(task.end)}\t")
        rows.append([task.device, name, kind, task.stream, task.number, *times])
    return CsvTable(columns, rows)


def npu_mem(profile: Profile) -> CsvTable:
    """The device's memory that this process has in use, each time that it changes."""
    columns = ["Device_id", "event", "ddr(KB)", "hbm(KB)", "memory(KB)", "timestamp(us)"]
    rows: list[Sequence[object]] = [
        [use.device, "APP", 0, use.bytes / 1024, use.bytes / 1024, f"{microseconds(use.time)}\t"]
        for use in profile.memory
    ]
    return CsvTable(columns, rows)


def task_type(task: StreamTask) -> str:
    """What the toolkit calls a task that is no kernel."""
    return {"MEMCPY": "MEMCPY_ASYNC", "MEMSET": "MEMSET_ASYNC"}.get(task.kind, task.kind)


def microseconds(nanoseconds: int) -> str:
    """Exact: floats don't hold the times of day."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _of(profile: Profile, *kinds: str) -> list[StreamTask]:
    return [task for task in profile.tasks if task.kind in kinds]
