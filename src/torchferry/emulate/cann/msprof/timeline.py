"""The timeline: calls on the host, tasks of the device's streams, the arrows between them, and how they overlap."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.emulate.cann.msprof.records import (
    COMMUNICATION,
    COPY,
    HOST_RANGE,
    KERNEL,
    MARKS,
    Profile,
    StreamTask,
    collective_of,
)
from torchferry.emulate.cann.msprof.tables import NO_MODEL, microseconds, task_type

Event = dict[str, Any]
Span = tuple[int, int]

_NO_SUBTASK = 4294967295
_LINES = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
_API_OF_KIND = {
    COPY: "aclrtMemcpyAsync", "MEMSET": "aclrtMemsetAsync", "EVENT_RECORD": "aclrtRecordEvent",
    "EVENT_WAIT": "aclrtStreamWaitEvent", "MODEL_EXECUTE": "aclmdlRIExecuteAsync",
}  # fmt: skip


@dataclass(frozen=True)
class RowGroup:
    """Rows of the timeline that stand together, which a viewer takes for a process."""

    name: str
    order: int
    device: int = -1  # -1: the host

    def number(self, process: int) -> int:
        """A number of its own, unlike all others of this profile and of those of other processes."""
        return (process << 10) | (self.order << 5) | max(self.device, 0)

    def heads(self, process: int, threads: Iterable[tuple[int, str]]) -> Iterator[Event]:
        """The events that name it and its rows."""
        number = self.number(process)
        label = "CPU" if self.device < 0 else f"NPU {self.device}"
        yield _head("process_name", number, 0, {"name": self.name})
        yield _head("process_labels", number, 0, {"labels": label})
        yield _head("process_sort_index", number, 0, {"sort_index": self.order})
        for thread, name in threads:
            yield _head("thread_name", number, thread, {"name": name})
            yield _head("thread_sort_index", number, thread, {"sort_index": thread})


_HOST = RowGroup("CANN", 2)
_MARKS = RowGroup("MSTX", 1)


def write(profile: Profile, path: Path) -> None:
    """Write the timeline as one list of events."""
    with path.open("w", encoding="utf-8") as file:
        json.dump(list(events(profile)), file)


def events(profile: Profile) -> Iterator[Event]:
    """All events of the timeline, those of the host first."""
    yield from _host_events(profile)
    yield from _mark_events(profile)
    for device in profile.devices:
        tasks = [task for task in profile.tasks if task.device == device and task.kind not in MARKS]
        collectives = [task for task in tasks if task.kind == COMMUNICATION]
        others = [task for task in tasks if task.kind != COMMUNICATION]
        yield from _stream_events(profile.process, device, others)
        yield from _collective_events(profile.process, device, collectives)
        yield from _overlap_events(profile.process, device, tasks)


def _host_events(profile: Profile) -> Iterator[Event]:
    number = _HOST.number(profile.process)
    threads = {call.thread for call in profile.calls} | {task.thread for task in profile.tasks}
    yield from _HOST.heads(profile.process, ((thread, f"Thread {thread}") for thread in sorted(threads)))
    for call in profile.calls:
        mode = "ACL_OP" if call.name.startswith("aclnn") else "ACL_RTS"
        facts = _host_facts(call.thread, mode, "acl", call.name, "0", 0)
        yield _span(f"AscendCL@{call.name}", number, call.thread, (call.start, call.end), facts)
    for task in profile.tasks:
        if task.kind in MARKS:
            continue
        # what has put the task on its stream: level, name and object
        if task.kind == KERNEL:
            level, name, item = "node", "launch", task.kernel.name
        elif task.kind == COMMUNICATION:
            level, name, item = "communication", task.function, collective_of(task).name
        else:
            name = _API_OF_KIND.get(task.kind, task_type(task)).removeprefix("aclrt")
            level, item = "runtime", "0"
        facts = _host_facts(task.thread, name, level, name, item, task.connection)
        title = f"{level.capitalize()}@{name}"
        yield _span(title, number, task.thread, (task.called, task.call_ended), facts)
        yield _arrow("s", task, number, task.thread, task.called)


def _mark_events(profile: Profile) -> Iterator[Event]:
    """What the program has marked itself: a row for each thread that did, and for each stream. They are no work."""
    marked = [task for task in profile.tasks if task.kind in MARKS]
    if not marked:
        return
    number = _MARKS.number(profile.process)
    in_streams = [task for task in marked if task.kind != HOST_RANGE]
    rows = {task.thread: f"Thread {task.thread}" for task in marked}
    rows |= {_row_of_stream(task): f"NPU {task.device} Stream {task.stream}" for task in in_streams}
    yield from _MARKS.heads(profile.process, sorted(rows.items()))
    for task in marked:
        facts = {"connection_id": task.connection}
        yield _span(task.function, number, task.thread, (task.called, task.call_ended), facts)
    for task in in_streams:
        facts = {"connection_id": task.connection}
        yield _span(task.function, number, _row_of_stream(task), (task.start, task.end), facts)
        yield _arrow("s", task, number, task.thread, task.called)
        yield _arrow("f", task, number, _row_of_stream(task), task.start)


def _row_of_stream(task: StreamTask) -> int:
    """Unlike the numbers of threads."""
    return -1 - (task.device << 16 | task.stream)


def _host_facts(thread: int, mode: str, level: str, name: str, item: str, connection: int) -> dict[str, Any]:
    return {
        "Thread Id": thread,
        "Mode": mode,
        "level": level,
        "id": name,
        "item_id": item,
        "connection_id": connection,
    }


def _stream_events(process: int, device: int, tasks: list[StreamTask]) -> Iterator[Event]:
    hardware = RowGroup("Ascend Hardware", 8, device)
    number = hardware.number(process)
    streams = sorted({task.stream for task in tasks})
    yield from hardware.heads(process, ((stream, f"Stream {stream}") for stream in streams))
    for task in tasks:
        name = task.kernel.name if task.kind == KERNEL else task_type(task)
        yield _span(name, number, task.stream, (task.start, task.end), _task_facts(task))
        yield _arrow("f", task, number, task.stream, task.start)


def _task_facts(task: StreamTask) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "Model Id": NO_MODEL,
        "Task Type": task.kernel.core if task.kind == KERNEL else task_type(task),
        "Stream Id": task.stream,
        "Physical Stream Id": task.stream,
        "Task Id": task.number,
        "Batch Id": 0,
        "Subtask Id": _NO_SUBTASK,
        "connection_id": task.connection,
    }
    if task.kind == COPY:
        facts["size(B)"] = int(task.details)
        facts["bandwidth(GB/s)"] = round(int(task.details) / max(task.duration, 1), 4)
        facts["operation"] = task.function
    return facts


def _collective_events(process: int, device: int, tasks: list[StreamTask]) -> Iterator[Event]:
    if not tasks:
        return
    groups = RowGroup("Communication", 10, device)
    number = groups.number(process)
    done = [(task, collective_of(task)) for task in tasks]
    rows = {group: row for row, group in enumerate(dict.fromkeys(one.group for _, one in done))}
    yield from groups.heads(process, ((row, f"Group {group} Communication") for group, row in rows.items()))
    for task, one in done:
        facts = {
            "connection_id": task.connection,
            "model id": NO_MODEL,
            "data_type": one.dtype,
            "alg_type": "MESH",
            "count": one.count,
            "relay": "no",
            "retry": "no",
        }
        yield _span(one.name, number, rows[one.group], (task.start, task.end), facts)
        yield _arrow("f", task, number, rows[one.group], task.start)


def _overlap_events(process: int, device: int, tasks: list[StreamTask]) -> Iterator[Event]:
    computing = _union((task.start, task.end) for task in tasks if task.kind == KERNEL)
    talking = _union((task.start, task.end) for task in tasks if task.kind == COMMUNICATION)
    busy = _union((*computing, *talking))
    whole = [(busy[0][0], busy[-1][1])] if busy else []
    overlap = RowGroup("Overlap Analysis", 11, device)
    number = overlap.number(process)
    yield from overlap.heads(process, enumerate(_LINES))
    lines = (computing, talking, _without(talking, computing), _without(whole, busy))
    for row, spans in enumerate(lines):
        for span in spans:
            yield _span(_LINES[row], number, row, span, {})


def _union(spans: Iterable[Span]) -> list[Span]:
    """Without overlaps, in order."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _without(spans: list[Span], taken: list[Span]) -> list[Span]:
    """What is left of some spans; both are unions."""
    found: list[Span] = []
    at = 0
    for start, end in spans:
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        while at < len(taken) and taken[at][0] < end:
            if taken[at][0] > start:
                found.append((start, taken[at][0]))
            start = taken[at][1]
            if start >= end:
                break  # it may reach into the next span
            at += 1
        if start < end:
            found.append((start, end))
    return found


def _head(kind: str, number: int, thread: int, facts: dict[str, Any]) -> Event:
    return {"name": kind, "pid": number, "tid": thread, "args": facts, "ph": "M"}


def _span(name: str, number: int, thread: int, span: Span, facts: dict[str, Any]) -> Event:
    start, end = span
    return {
        "name": name, "pid": number, "tid": thread, "ts": microseconds(start), "dur": (end - start) / 1000, "args": facts, "ph": "X",
    }  # fmt: skip


def _arrow(end: str, task: StreamTask, number: int, thread: int, moment: int) -> Event:
    identity = str((task.connection << 32) | task.device)
    name = f"HostToDevice{identity}"
    arrow = {
        "name": name, "ph": end, "cat": "HostToDevice", "id": identity, "pid": number, "tid": thread, "ts": microseconds(moment),
    }  # fmt: skip
    return {**arrow, "bp": "e"} if end == "f" else arrow
