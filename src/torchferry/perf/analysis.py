"""From what was collected of a run, or from the paths that a user names, to everything that a report shows: `ferry analyze` as one function."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.errors import InputError
from torchferry.perf import ranks
from torchferry.perf.compare.model import RunComparison
from torchferry.perf.detect import registry
from torchferry.perf.detect.events import operators_in_window
from torchferry.perf.detect.evidence import compute_time, work_time
from torchferry.perf.model import (
    Analysis,
    Diagnosis,
    Impact,
    KernelRow,
    MemoryPoint,
    OperatorRow,
    StepTime,
    TimePart,
)
from torchferry.perf.opening import open_runs
from torchferry.perf.report.sentences import TOP, RunsReport, slowest
from torchferry.perf.roofline import peaks_of, reached, work_of
from torchferry.perf.run import DEVICE_PARTS, Run, divided, usual_step
from torchferry.perf.tables.kernels import KernelGroup, KernelTable
from torchferry.perf.timeline import timeline
from torchferry.report.progress import Show
from torchferry.text import Text, did_you_mean, then
from torchferry.traces.columns import EventKind, Interned, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.model import DeviceMemoryEvents, Trace

MOST_ROWS = 2000  # of a table; a program with more has shapes that change from step to step


def operator_rows(trace: Trace, device_name: str) -> tuple[list[OperatorRow], int]:
    """The operators of the window, the greatest first; and how many were left out."""
    host = trace.host
    rows = operators_in_window(trace)
    # For each signature the number of its shapes and types alone; and for each of these numbers one signature.
    known = Interned()
    numbered = [known[dims, types] for dims, types, *_ in trace.raw_signatures]
    signatures = np.array([*numbered, len(known)], np.int64)
    examples = [-1] * (len(known) + 1)
    for signature, number in enumerate(numbered):
        examples[number] = signature
    alike = signatures[host.signature[rows]]  # the last is that of -1: not recorded
    keys, first, group = np.unique(
        host.name[rows] * len(signatures) + alike, return_index=True, return_inverse=True
    )
    calls = np.bincount(group, minlength=len(keys))
    own = np.bincount(group, weights=trace.own_time[rows], minlength=len(keys))
    device = np.bincount(group, weights=work_time(trace)[rows], minlength=len(keys))
    order = np.lexsort((-own, -device))
    kept = order[:MOST_ROWS]
    names, numbers = host.name[rows[first[kept]]].tolist(), alike[first[kept]].tolist()
    found = [
        OperatorRow(
            trace.names[name],
            trace.signature(examples[number]).shapes_text,
            trace.signature(examples[number]).dtypes_text,
            int(calls[at]),
            float(own[at]) / 1e9,
            float(device[at]) / 1e9,
            place,
            roofline,
        )
        for at, name, number, place, roofline in zip(
            kept.tolist(),
            names,
            numbers,
            trace.places(rows[first[kept]]),
            _rooflines(trace, device_name, rows, first, group)[kept].tolist(),
            strict=True,
        )
    ]
    return found, len(order) - len(kept)


def _rooflines(trace: Trace, device_name: str, rows: Ints, first: Ints, group: Ints) -> Any:
    """For each group of rows what it reaches of what the device can do; None: not known."""
    found = np.full(len(first), None, object)
    peaks = None if trace.is_host_only else peaks_of(device_name)
    if peaks is None:
        return found
    time = compute_time(trace)[rows]
    seconds = np.bincount(group, weights=time, minlength=len(first)) / 1e9
    calls = np.bincount(group, weights=time > 0, minlength=len(first))
    for at in np.flatnonzero(calls).tolist():
        row = int(rows[first[at]])
        work = work_of(
            trace.names[int(trace.host.name[row])], trace.signature(int(trace.host.signature[row]))
        )
        found[at] = reached(work, float(seconds[at] / calls[at]), peaks)
    return found


def kernel_rows(trace: Trace) -> tuple[list[KernelRow], int]:
    """What the device did in the window, the greatest first; and how many names were left out."""
    kept = trace.in_window(trace.device)
    device, owner = trace.device.take(kept), trace.owner[kept]
    if not len(device):
        return [], 0
    keys, first, group = np.unique(
        device.name * len(EventKind) + device.kind, return_index=True, return_inverse=True
    )
    calls = np.bincount(group, minlength=len(keys))
    time = np.bincount(group, weights=device.duration, minlength=len(keys))
    order = np.argsort(-time, kind="stable")
    launchers = _launchers(trace, group, device.duration, owner)
    found = [
        KernelRow(
            trace.names[int(device.name[first[at]])],
            EventKind(int(device.kind[first[at]])).name.lower(),
            int(calls[at]),
            float(time[at]) / 1e9,
            launchers.get(at, ""),
        )
        for at in order[:MOST_ROWS].tolist()
    ]
    return found, max(len(order) - MOST_ROWS, 0)


def _launchers(trace: Trace, group: Ints, duration: Ints, owner: Ints) -> dict[int, str]:
    """For each group the operator that launched most of its time."""
    owned = owner >= 0
    owned[owned] = trace.host.kind[owner[owned]] == EventKind.OPERATOR
    if not owned.any():
        return {}
    count = len(trace.names)
    pairs, place = np.unique(group[owned] * count + trace.host.name[owner[owned]], return_inverse=True)
    time = np.bincount(place, weights=duration[owned], minlength=len(pairs))
    # later ones win: in the order of their time, each group ends with its greatest
    return {int(pairs[at] // count): trace.names[int(pairs[at] % count)] for at in np.argsort(time).tolist()}


# What an analysis can tell from tables alone, without a trace.


def facts_of_tables(run: Run) -> dict[str, Any]:
    """Fields of an Analysis; what several tables tell is taken from the one that tells it best."""
    facts: dict[str, Any] = {}
    if run.kernels is not None:
        parts = _parts(run.kernels)
        facts.update(seconds=sum(parts.values()), parts=parts)
        # Operators are the table's types: MatMulV2, TransData.
        facts["operators"] = tuple(_operators(run.kernels.groups))[:MOST_ROWS]
        facts["kernels"] = tuple(_kernels(run.kernels))[:MOST_ROWS]
    if run.operators is not None:
        rows = run.operators.rows
        on_device = sum(row.device_seconds for row in rows)
        facts.update(operators=tuple(rows[:MOST_ROWS]), is_host_only=not on_device)
        if "seconds" not in facts:
            seconds = on_device or sum(row.host_seconds for row in rows)
            facts.update(seconds=seconds, parts={TimePart.COMPUTE: seconds})
    if (table := run.step_table) is not None:
        columns = {
            TimePart.COMPUTE: table.computing,
            TimePart.COMMUNICATION: table.communication,
            TimePart.OTHER: table.free,
        }
        steps: list[StepTime] = []
        start = 0.0
        for at, number in enumerate(table.number.tolist()):
            parts = {part: int(column[at]) / 1e9 for part, column in columns.items()}
            steps.append(StepTime(max(number, 0), start, sum(parts.values()), parts))
            start += steps[-1].seconds
        sums = {part: int(column.sum()) / 1e9 for part, column in columns.items()}
        facts.update(steps=tuple(steps), seconds=table.seconds, parts=sums)
    return facts


def _parts(table: KernelTable) -> dict[TimePart, float]:
    """Parts of the time from the first kernel to the last; where the table has no times, of the kernels' own."""
    first, last = table.span
    if last <= first:
        sums = np.bincount(table.kind, weights=table.duration, minlength=len(EventKind)) / 1e9
        return {part: float(sum(sums[kind] for kind in kinds)) for part, kinds in DEVICE_PARTS.items()}
    busy = {part: table.busy(*kinds) for part, kinds in DEVICE_PARTS.items()}
    parts = divided(Intervals(np.array([first]), np.array([last])), busy)
    return {part: moments.total / 1e9 for part, moments in parts.items()}


def _operators(groups: Iterable[KernelGroup]) -> list[OperatorRow]:
    """Kernels of one type with the same tensors, whatever their names."""
    sums: dict[tuple[str, str, str], tuple[int, float]] = {}
    for group in groups:
        key = (group.type or group.name, group.signature.input_shapes, group.signature.input_dtypes)
        calls, seconds = sums.get(key, (0, 0.0))
        sums[key] = (calls + group.calls, seconds + group.seconds)
    rows = [OperatorRow(*key, calls, 0.0, seconds) for key, (calls, seconds) in sums.items()]
    return sorted(rows, key=lambda row: -row.device_seconds)


def _kernels(table: KernelTable) -> list[KernelRow]:
    keys, first, group = np.unique(table.name, return_index=True, return_inverse=True)
    calls = np.bincount(group, weights=table.calls, minlength=len(keys)).astype(np.int64).tolist()
    seconds = np.bincount(group, weights=table.duration, minlength=len(keys)) / 1e9
    return [
        KernelRow(
            table.texts[int(keys[at])],
            EventKind(int(table.kind[first[at]])).name.lower(),
            calls[at],
            float(seconds[at]),
            table.texts[int(table.type[first[at]])],
        )
        for at in np.argsort(-seconds, kind="stable").tolist()
    ]


# Memory over time, with as many points as a page can draw; peaks are never left out.

MOST_POINTS = 1000


def _has_totals(memory: DeviceMemoryEvents) -> bool:
    """Whether it is known how much was allocated, and not only by how much that changed."""
    return bool((memory.allocated >= 0).any())


def memory_curve(memory: DeviceMemoryEvents) -> tuple[MemoryPoint, ...]:
    """The points; memory that was not recorded is 0."""
    allocated = np.maximum(memory.allocated, 0)
    if not _has_totals(memory):  # what was there before is not known either: the lowest is taken for 0
        sums: Ints = np.cumsum(memory.changed_by)
        allocated = sums - min(int(sums.min(initial=0)), 0)
    rows = _thinned(allocated)
    reserved = np.maximum(memory.reserved, 0)
    return tuple(
        MemoryPoint(start / 1e9, held, kept)
        for start, held, kept in zip(
            memory.start[rows].tolist(), allocated[rows].tolist(), reserved[rows].tolist(), strict=True
        )
    )


def _thinned(values: Ints) -> Ints:
    """The rows of the greatest and the least of each of some hundred pieces, and both ends."""
    if len(values) <= MOST_POINTS:
        return np.arange(len(values))
    pieces = np.array_split(np.arange(len(values)), MOST_POINTS // 2 - 1)
    peaks = [int(piece[0]) + int(values[piece].argmax()) for piece in pieces]
    lows = [int(piece[0]) + int(values[piece].argmin()) for piece in pieces]
    return np.unique([0, *peaks, *lows, len(values) - 1])


_FAILED = Text(
    "Detector {id} failed ({error}), so its bottleneck was not checked. Please report this.",
    "检测器 {id} 出错（{error}），未检查对应的瓶颈。请反馈。",
)
_BY_OPTIMIZER = Text(
    "The trace has no step marks: a step lasts from the end of one optimizer step to the end of the next.",
    "trace 中没有步的标记：以相邻两次优化器 step 的结束为一步。",
)
_NO_STEPS = Text(
    "The trace has no steps, so shares refer to its whole duration. Call prof.step() in the loop, or "
    "use `ferry profile`.",
    "trace 中没有步：占比按整个 trace 的时间计算。请在循环中调用 prof.step()，或使用 `ferry profile`。",
)
_CHANGES_ALONE = Text(
    "The profiler recorded only changes of memory, not totals: the curve starts from the lowest level.",
    "profiler 只记录了内存的变化量，未记录总量：曲线以最低点为起点。",
)
_LEFT_OUT = Text("The {table} omits the {count} smallest rows.", "{table}略去了最小的 {count} 行。")
NOTABLY_SLOWER = 1.2  # a profiled step than one before
_SLOWED_DOWN = Text(
    "The profiler slows the program down: a step takes {profiled:.1f} ms with it and "
    "{unprofiled:.1f} ms without. Host times appear too large; `ferry profile --no-stacks` has less "
    "overhead.",
    "profiler 拖慢了程序：开启时每步 {profiled:.1f} ms，关闭时 {unprofiled:.1f} ms。"
    "主机侧耗时显示偏大；`ferry profile --no-stacks` 开销更小。",
)
_OPERATORS = Text("table of operators", "算子表")
_KERNELS = Text("table of device activity", "设备任务表")


def analyze(run: Run, wanted: Callable[[str], bool] = lambda _: True) -> Analysis:
    """Everything of a run; `wanted` tells which detectors, by their ids, are to look."""
    diagnoses: list[Diagnosis] = []
    checked: list[str] = []
    unchecked: dict[str, Text] = {}
    failed: dict[str, str] = {}
    for detector in registry.DETECTORS:
        if not wanted(detector.id):
            continue
        try:
            lacks = detector.lacks(run)
            if lacks is not None:
                unchecked[detector.id] = lacks
                continue
            diagnoses.extend(list(detector.detect(run)))  # all that it finds or nothing
            checked.append(detector.id)
        except Exception as error:  # one that breaks down does not take the others with it
            failed[detector.id] = f"{type(error).__name__}: {error}"
    diagnoses.sort(key=order)
    notes = [*run.notes, *(_FAILED.format(id=name, error=error) for name, error in failed.items())]
    facts: dict[str, Any] = {
        "sources": run.sources,
        "device": run.device,
        "diagnoses": tuple(diagnoses),
        "checked": tuple(checked),
        "unchecked": unchecked,
        "failed": failed,
        "simulated": bool(run.profile.get("simulated")) or (run.trace is not None and run.trace.is_simulated),
        "command": tuple(map(str, run.profile.get("command") or ())),
        "memory": _memory(run, notes),
        "device_name": run.device_name,
        "torch": run.torch,
        "rank": run.rank,
        "memory_limit": run.memory_limit,
    }
    if run.trace is not None:
        facts.update(_of_trace(run, run.trace, diagnoses, notes))
    else:
        facts.update(facts_of_tables(run))
    return Analysis(**facts, notes=tuple(dict.fromkeys(notes)))


def order(diagnosis: Diagnosis) -> tuple[int, float]:
    """The key that sorts what matters most first."""
    return (list(Impact).index(diagnosis.severity), -diagnosis.weight)


def _of_trace(run: Run, trace: Trace, diagnoses: list[Diagnosis], notes: list[Text]) -> dict[str, Any]:
    operators, more_operators = operator_rows(trace, run.device_name)
    kernels, more_kernels = kernel_rows(trace)
    bars = timeline(
        trace, (each.example for found in diagnoses for each in found.evidence if each.example is not None)
    )
    notes += trace.notes
    profiled, unprofiled = usual_step(run) or (0.0, 0.0)
    if profiled > NOTABLY_SLOWER * unprofiled:
        notes.append(_SLOWED_DOWN.format(profiled=profiled * 1e3, unprofiled=unprofiled * 1e3))
    if not len(trace.steps):
        notes.append(_NO_STEPS)
    elif trace.steps.basis == "optimizer":
        notes.append(_BY_OPTIMIZER)
    for table, count in ((_OPERATORS, more_operators), (_KERNELS, more_kernels)):
        if count:
            notes.append(_LEFT_OUT.format(table=table, count=count))
    return {
        "steps": _steps(run, trace),
        "seconds": trace.seconds,
        "parts": {part: moments.total / 1e9 for part, moments in run.parts.items()},
        "operators": tuple(operators),
        "kernels": tuple(kernels),
        "timeline": bars.spans,
        "timeline_step": bars.step,
        "timeline_left_out": bars.left_out,
        "is_host_only": trace.is_host_only,
    }


def _steps(run: Run, trace: Trace) -> tuple[StepTime, ...]:
    steps = trace.steps
    parts = {part: moments.covered(steps.start, steps.end).tolist() for part, moments in run.parts.items()}
    return tuple(
        StepTime(
            int(steps.number[at]),
            int(steps.start[at]) / 1e9,
            int(steps.end[at] - steps.start[at]) / 1e9,
            {part: times[at] / 1e9 for part, times in parts.items()},
        )
        for at in range(len(steps))
    )


def _memory(run: Run, notes: list[Text]) -> dict[str, tuple[MemoryPoint, ...]]:
    """The curves by device, the host last."""
    curves = dict(run.trace.memory) if run.trace is not None else {}
    if run.memory is not None:
        curves.update(run.memory.curves)
    known = {device: curve for device, curve in curves.items() if len(curve.start)}
    if not all(map(_has_totals, known.values())):
        notes.append(_CHANGES_ALONE)
    return {
        device: memory_curve(known[device])
        for device in sorted(known, key=lambda each: (each == "cpu", each))
    }


def analyze_paths(
    paths: Sequence[Path],
    baseline: Path | None = None,
    rank: int | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    top: int = TOP,
    on_progress: Show | None = None,
) -> RunsReport:
    """Analyze the run that these files and folders are of, by these detectors, and compare it with the baseline."""
    known = [*(detector.id for detector in registry.DETECTORS), ranks.ID]
    chosen, left_out = _detector_ids(only, known), _detector_ids(ignore, known)

    def wanted(name: str) -> bool:
        return (not chosen or name in chosen) and name not in left_out

    runs = _of_rank(open_runs(paths, on_progress), rank)
    others = open_runs([baseline], on_progress) if baseline else []
    analyses = [analyze(run, wanted) for run in runs]
    if len(analyses) > 1 and wanted(ranks.ID):
        # What comparing the ranks finds belongs to the one that holds up the others.
        at = slowest(analyses)
        found = sorted([*ranks.compare_ranks(runs), *analyses[at].diagnoses], key=order)
        analyses[at] = replace(analyses[at], diagnoses=tuple(found))
    return RunsReport(tuple(analyses), tuple(_compared(runs, others)), top)


_LISTED = Text(
    "`ferry analyze --list-detectors` lists them", "`ferry analyze --list-detectors` 可列出全部检测器"
)


def _detector_ids(given: Sequence[str], known: Sequence[str]) -> set[str]:
    found = {part.strip() for text in given for part in text.split(",") if part.strip()}
    for name in sorted(found.difference(known)):
        hint = did_you_mean(difflib.get_close_matches(name, known, 1), _LISTED)
        raise InputError(then(Text(f"no detector {name!r}", f"没有检测器 {name!r}"), hint))
    return found


def _of_rank(runs: Sequence[Run], rank: int | None) -> Sequence[Run]:
    if rank is None:
        return runs
    numbers = {at: _number(run, at) for at, run in enumerate(runs)}
    found = [runs[at] for at, number in numbers.items() if number == rank]
    if not found:
        known = ", ".join(map(str, sorted(numbers.values())))
        raise InputError(
            Text(
                f"no rank {rank} in the given profiles; choose one of {known}",
                f"给定的 profile 中没有 rank {rank}；请从 {known} 中选择",
            )
        )
    return found


def _number(run: Run, position: int) -> int:
    return position if run.rank is None else run.rank


def _compared(runs: Sequence[Run], baseline: Sequence[Run]) -> Iterator[RunComparison]:
    """Each rank with its like; one of the baseline with all, if it has but one."""
    if not baseline:
        return
    from torchferry.perf.compare.comparing import compare

    others = {_number(run, at): run for at, run in enumerate(baseline)}
    for at, run in enumerate(runs):
        other = baseline[0] if len(baseline) == 1 else others.get(_number(run, at))
        if other is not None:
            yield compare(run, other)
