"""The tables of a profile, with the columns of the toolkit's, and what its analysis says of collectives."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import pvariance
from typing import Any

from torchferry.emulate.cann.msprof.records import (
    COMMUNICATION,
    KERNEL,
    MARKS,
    Collective,
    Profile,
    StreamTask,
    collective_of,
)

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
    """The tables by the names of their files."""
    tables = {
        "op_summary": op_summary(profile),
        "op_statistic": op_statistic(profile),
        "api_statistic": api_statistic(profile),
        "task_time": task_time(profile),
        "npu_mem": npu_mem(profile),
    }
    if _of(profile, COMMUNICATION):
        tables["communication_statistic"] = communication_statistic(profile)
    return tables


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
        waited = microseconds(max(task.start - before, 0))
        times = (f"{microseconds(task.start)}\t", microseconds(task.duration), waited)
        # one CPU computes all of a kernel: cores are not divided
        blocks = (0, 0, UNKNOWN) if task.kind == COMMUNICATION else (1, 0, "NO")
        tensors = _texts_of_tensors(task) if shapes else ()
        rows.append([*_identity(task), *times, *blocks, *tensors, UNKNOWN])
    return CsvTable([*columns, *shapes, "Context ID"], rows)


def _identity(task: StreamTask) -> Sequence[object]:
    if task.kind == COMMUNICATION:
        one = collective_of(task)
        return task.device, NO_MODEL, UNKNOWN, UNKNOWN, one.name, one.type, UNKNOWN, COMMUNICATION
    kernel = task.kernel
    return task.device, NO_MODEL, task.number, task.stream, kernel.name, kernel.type, "dynamic", kernel.core


def _texts_of_tensors(task: StreamTask) -> list[str]:
    if task.kind == COMMUNICATION:
        return [UNKNOWN] * len(_OF_SHAPES)
    texts = []
    for tensors in task.tensors:
        texts += [
            f'"{";".join(tensor.shape for tensor in tensors)}"',  # quoted twice, as the toolkit's are
            ";".join(tensor.dtype for tensor in tensors),
            ";".join(tensor.format for tensor in tensors),
        ]
    return texts


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
        name, kind = UNKNOWN, task_type(task)
        if task.kind == KERNEL:
            name, kind = task.kernel.name, _TASK_KINDS[task.kernel.core]
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


# Processes of one machine share memory: the way that boards of one machine have, and all of it at once.
_LINK = "HCCS"
_OTHER_LINKS = ("RDMA", "PCIE", "SIO")
_LARGE = 32e6  # bytes from which the toolkit calls a packet large, as it has it for this link


def write_communication(profile: Profile, folder: Path) -> None:
    """Write the times of collectives and what went over which link, as the toolkit's analysis does, if there are any."""
    done = [(task, collective_of(task)) for task in _of(profile, COMMUNICATION)]
    if not done:
        return
    folder.mkdir(parents=True, exist_ok=True)
    times = {f"{one.name}@{one.group}": _times(task, one) for task, one in done}
    links = {f"{one.name}@{one.group}": _links(task, one) for task, one in done}
    (folder / "communication.json").write_text(json.dumps(times), "utf-8")
    (folder / "communication_matrix.json").write_text(json.dumps(links), "utf-8")


def _times(task: StreamTask, one: Collective) -> dict[str, Any]:
    waited, moved = task.waited / 1e6, (task.duration - task.waited) / 1e6
    size = one.bytes / 1e6
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": float(microseconds(task.start)),
            "Elapse Time(ms)": task.duration / 1e6,
            "Transit Time(ms)": moved,
            "Wait Time(ms)": waited,
            "Synchronization Time(ms)": waited,
            "Idle Time(ms)": 0.0,
            "Wait Time Ratio": _ratio(waited, waited + moved),
            "Synchronization Time Ratio": _ratio(waited, waited + moved),
        },
        "Communication Bandwidth Info": {
            **{link: _bandwidth(0.0, 0.0) for link in _OTHER_LINKS},
            _LINK: _bandwidth(size, moved),
            "SDMA": _bandwidth(size, moved),
        },
    }


def _bandwidth(megabytes: float, milliseconds: float) -> dict[str, Any]:
    return {
        "Transit Size(MB)": megabytes,
        "Transit Time(ms)": milliseconds,
        "Bandwidth(GB/s)": _ratio(megabytes, milliseconds),
        "Large Packet Ratio": float(megabytes * 1e6 > _LARGE),
        "Size Distribution": {str(megabytes): [1, milliseconds]} if megabytes else {},
    }


def _links(task: StreamTask, one: Collective) -> dict[str, Any]:
    moved = (task.duration - task.waited) / 1e6
    size = one.bytes / 1e6
    return {
        f"{source}-{target}": {
            "Transport Type": _LINK,
            "Transit Time(ms)": moved,
            "Transit Size(MB)": size,
            "Bandwidth(GB/s)": _ratio(size, moved),
        }
        for source, target in one.links
    }


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
