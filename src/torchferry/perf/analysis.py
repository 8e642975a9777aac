"""From what was collected of a run to everything that a report shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from torchferry.perf.memory_curves import has_totals, memory_curve
from torchferry.perf.model import Analysis, Diagnosis, MemoryPoint, Severity, StepTime
from torchferry.perf.of_tables import facts_of_tables
from torchferry.perf.rows import kernel_rows, operator_rows
from torchferry.perf.slowdown import usual_step
from torchferry.perf.timeline import timeline
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.perf.detect.model import Detector
    from torchferry.perf.run import Run
    from torchferry.perf.trace.model import Trace

_FAILED = Text(
    "Detector {id} broke down ({error}): what it looks for was not looked for. Please report it.",
    "检测器 {id} 出错（{error}）：未检查其所查找的问题。请反馈。",
)
_BY_OPTIMIZER = Text(
    "The trace has no marks of steps: a step is from the end of one optimizer's step to the end of the next.",
    "跟踪中没有步的标记：以相邻两次优化器 step 的结束为一步。",
)
_NO_STEPS = Text(
    "The trace has no steps: shares are of its whole time. Call prof.step() in the loop, or use `ferry profile`.",
    "跟踪中没有步：占比按整个跟踪的时间计算。请在循环中调用 prof.step()，或使用 `ferry profile`。",
)
_CHANGES_ALONE = Text(
    "The profiler recorded changes of memory, not how much there was: the curve counts from what was held at its lowest.",
    "分析器只记录了内存的变化量，未记录总量：曲线以最低点为起点。",
)
_LEFT_OUT = Text(
    "The {table} leaves {count} rows out, the smallest ones.", "{table}略去了最小的 {count} 行。"
)
NOTABLY_SLOWER = 1.2  # a profiled step than one before
_SLOWED_DOWN = Text(
    "The profiler slows the program down: a step takes {profiled:.1f} ms with it and {unprofiled:.1f} ms without. What the host takes "
    "is shown larger than it is; `ferry profile --no-stacks` costs less.",
    "分析器拖慢了程序：开启时每步 {profiled:.1f} 毫秒，关闭时 {unprofiled:.1f} 毫秒。主机侧耗时显示偏大；`ferry profile --no-stacks` 开销更小。",
)
_OPERATORS = Text("table of operators", "算子表")
_KERNELS = Text("table of the device's work", "设备任务表")


class _Found(NamedTuple):
    """What the detectors say."""

    diagnoses: list[Diagnosis]
    checked: list[str]
    unchecked: dict[str, Text]
    failed: dict[str, str]


def analyze(run: Run, wanted: Callable[[str], bool] = lambda _: True) -> Analysis:
    """`wanted` tells which detectors, by their ids, are to look."""
    from torchferry.perf.detect.registry import DETECTORS

    found = _detected(run, [detector for detector in DETECTORS if wanted(detector.id)])
    notes = [*run.notes, *(_FAILED.format(id=name, error=error) for name, error in found.failed.items())]
    facts: dict[str, Any] = {
        "sources": run.sources,
        "device": run.device,
        "diagnoses": tuple(found.diagnoses),
        "checked": tuple(found.checked),
        "unchecked": found.unchecked,
        "failed": found.failed,
        "simulated": bool(run.profile.get("simulated")) or (run.trace is not None and run.trace.is_simulated),
        "command": tuple(map(str, run.profile.get("command") or ())),
        "memory": _memory(run, notes),
        **_of_profile(run),
    }
    if run.trace is not None:
        facts.update(_of_trace(run, run.trace, found.diagnoses, notes))
    else:
        facts.update(facts_of_tables(run))
    return Analysis(**facts, notes=tuple(dict.fromkeys(notes)))


def order(diagnosis: Diagnosis) -> tuple[int, float]:
    """What matters most comes first."""
    return (list(Severity).index(diagnosis.severity), -diagnosis.weight)


def _detected(run: Run, detectors: Collection[Detector]) -> _Found:
    """One that breaks down does not take the others with it."""
    found = _Found([], [], {}, {})
    for detector in detectors:
        try:
            lacks = detector.lacks(run)
            if lacks is not None:
                found.unchecked[detector.id] = lacks
                continue
            found.diagnoses.extend(list(detector.detect(run)))  # all that it finds or nothing
            found.checked.append(detector.id)
        except Exception as error:
            found.failed[detector.id] = f"{type(error).__name__}: {error}"
    found.diagnoses.sort(key=order)
    return found


def _of_profile(run: Run) -> dict[str, Any]:
    """What `ferry profile` wrote down beside the trace."""
    profile, mine = run.profile, run.rank_facts
    rank, limit = mine.get("rank"), mine.get("memory_limit")
    return {
        "device_name": str(profile.get("device_name") or ""),
        "torch": str(profile.get("torch") or ""),
        "rank": rank if isinstance(rank, int) else None,
        "memory_limit": limit if isinstance(limit, int) else 0,
    }


def _of_trace(run: Run, trace: Trace, diagnoses: list[Diagnosis], notes: list[Text]) -> dict[str, Any]:
    known = _of_profile(run)
    operators, more_operators = operator_rows(trace, known["device_name"])
    kernels, more_kernels = kernel_rows(trace)
    bars = timeline(
        trace, (each.example for found in diagnoses for each in found.evidence if each.example is not None)
    )
    notes += trace.notes
    notes += _slowed_down(run)
    if not len(trace.steps):
        notes.append(_NO_STEPS)
    elif trace.steps.basis == "optimizer":
        notes.append(_BY_OPTIMIZER)
    for table, count in ((_OPERATORS, more_operators), (_KERNELS, more_kernels)):
        if count:
            notes.append(_LEFT_OUT.format(table=table, count=count))
    return {
        "device_name": known["device_name"] or trace.device_name,
        "torch": known["torch"] or trace.torch,
        "rank": trace.rank if known["rank"] is None else known["rank"],
        "memory_limit": known["memory_limit"] or trace.memory_limit,
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


def _slowed_down(run: Run) -> Iterator[Text]:
    """Whoever profiles should know what that does to the times."""
    usual = usual_step(run)
    if usual is not None and usual.profiled > NOTABLY_SLOWER * usual.unprofiled:
        yield _SLOWED_DOWN.format(profiled=usual.profiled * 1e3, unprofiled=usual.unprofiled * 1e3)


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
    """By device, the host last."""
    curves = dict(run.trace.memory) if run.trace is not None else {}
    if run.memory is not None:
        curves.update(run.memory.curves)
    known = {device: curve for device, curve in curves.items() if len(curve.start)}
    if not all(map(has_totals, known.values())):
        notes.append(_CHANGES_ALONE)
    return {
        device: memory_curve(known[device])
        for device in sorted(known, key=lambda each: (each == "cpu", each))
    }
