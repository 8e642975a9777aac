"""The device has nothing to do while the host calls operators; on the host alone: Python's time between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.checkpoint_writing import saves
from torchferry.perf.detect.events import (
    COLLECTING,
    PREPARING,
    SLEEPING,
    marks,
    moments_like,
    operators_in_window,
    outermost_operators,
    per_step,
)
from torchferry.perf.detect.evidence import added_up, names_of
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.detect.waits import waits_for_device
from torchferry.perf.model import Diagnosis, Evidence, TimePart
from torchferry.perf.run import Run, share_without_profiler
from torchferry.text import Text
from torchferry.traces.columns import EventKind, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.model import Trace
from torchferry.traces.names import is_profiler_step, place_of

ID = "host_bound"
LEAST_SHARE = 0.10  # of the steps; the beginning of a step and the end of its backward pass always cost some
LEAST_SHARE_OF_ALL_PYTHON = 0.50  # where PyTorch's own, and the time of recording it, can't be told apart
OUR_MARKS = "torchferry::"
MOST = 8

_TITLE = Text("The host is slower than the device", "主机下发慢于设备执行")
_SUMMARY = Text(
    "For {share:.1%} of the time the device waits while the host calls operators: {launches:.0f} "
    "tasks per step, half of which take {kernel:.0f} µs or less, while half of the calls take the "
    "host {host:.0f} µs or more.",
    "设备有 {share:.1%} 的时间在等待主机调用算子：每步下发 {launches:.0f} 个任务，半数不超过 "
    "{kernel:.0f} µs，而半数调用需要主机 {host:.0f} µs 以上。",
)
_PYTHON_TITLE = Text("Python takes much of the time between operators", "算子之间的 Python 代码耗时过多")
_PYTHON_SUMMARY = Text(
    "{share:.1%} of the time of a step lies between operators, in Python code of the program and its "
    "libraries.",
    "单步时间的 {share:.1%} 在算子之间，用于程序及其所用库的 Python 代码。",
)
_ALL_PYTHON_SUMMARY = Text(
    "{share:.1%} of the time of a step lies between operators, in Python code of the program, its "
    "libraries or PyTorch; a trace without Python functions (with_stack=True, `ferry profile`) can't "
    "tell them apart.",
    "单步时间的 {share:.1%} 在算子之间，用于 Python：程序、所用库或 PyTorch 自身的代码；没有 Python "
    "函数的 trace（with_stack=True，`ferry profile`）无法区分。",
)
_LARGER = Text(
    "If the model is small, PyTorch's own calls take as long as its operators: use a larger batch, "
    "so that each step does more.",
    "若模型很小，PyTorch 自身的调用与算子耗时相当：增大批量，使每步的计算更多。",
)
_FEWER = Text(
    "Call fewer and larger operators: a larger batch, fused or foreach optimizers, modules instead "
    "of many elementwise operators, torch.compile or captured graphs where the device supports them.",
    "减少算子个数、增大单个算子：增大批量，使用融合或 foreach 优化器，以模块代替零散的逐元素算子，"
    "设备支持时使用 torch.compile 或图捕获。",
)
_HOST = Text(
    "`ferry doctor host` checks what slows the host down: CPU governor, core binding, variables of "
    "the device's runtime.",
    "`ferry doctor host` 检查拖慢主机的因素：CPU 调频策略、绑核、设备运行时的环境变量。",
)
_PYTHON_REMEDY = Text(
    "Move loops over elements, lists and dictionaries out of the step, or write them as operators on whole tensors.",
    "把对元素、列表、字典的循环移出单步，或写成整张量运算。",
)
_BASIS = Text(
    "the time for which the device waits for the host; a host that stays ahead hides all of it",
    "设备等待主机的时间；主机能提前下发时可全部隐藏",
)
_OF_TORCH = re.compile(r"(?:^|/)torch(?:ferry|_\w+)?/")
_BETWEEN = Text("Python between operators", "算子之间的 Python")
_PREPARES = Text("data preparation (NumPy, Pillow, ...)", "准备数据（NumPy、Pillow 等）")
_SLEEPS = Text("the program sleeps", "程序休眠")
_SLEEP_TITLE = Text("The program sleeps between operators", "程序在算子之间休眠")
_SLEEP_REMEDY = Text(
    "Move time.sleep() out of the step; to wait for something, use a queue or an event.",
    "把 time.sleep() 移出单步；若要等待，请使用队列或事件。",
)
_PREPARE_TITLE = Text("Data is prepared within the step", "在训练步内准备数据")
_PREPARE_REMEDY = Text(
    "Prepare data outside the step: in the Dataset, so that DataLoader's workers do it in parallel "
    "(num_workers=4 or more); once before training; or with tensor operators on whole batches "
    "(torchvision.transforms.v2).",
    "在训练步之外准备数据：放入 Dataset，由 DataLoader 的工作进程并行完成（num_workers=4 或更多）；"
    "训练前一次做好；或用张量算子对整批数据处理（torchvision.transforms.v2）。",
)
_MOSTLY = 0.5  # of the gaps


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the gaps, and who was at work in them."""
    if trace.is_host_only:
        yield from _python(run, trace)
        return
    # What follows a wait has a diagnosis of its own.
    gaps = run.parts[TimePart.HOST] - waits_for_device(run, trace).idle_after
    share = trace.share(gaps.total)
    if share < LEAST_SHARE:
        return
    summary = _SUMMARY.format(share=share, **_typical(trace))
    evidence = sorted((*_by_operators(trace, gaps), *_by_python(trace, gaps)), key=lambda each: -each.seconds)
    cause = _cause(trace, gaps)
    remedies = (_FEWER, _HOST) if cause is None else (cause[1],)
    shown = tuple(evidence[:MOST])
    yield Diagnosis(ID, _TITLE, summary, share, remedies, shown, gain=share, gain_basis=_BASIS)


def _typical(trace: Trace) -> dict[str, float]:
    """Medians: a call that finds the device's queue full takes as long as the device does."""
    inside = trace.in_window(trace.device)
    work, owner = trace.device.duration[inside], trace.owner[inside]
    calls = trace.host.duration[np.unique(outermost_operators(trace, owner[owner >= 0]))]
    return {
        "launches": per_step(trace, len(work)),
        "kernel": float(np.median(work)) / 1e3 if len(work) else 0.0,
        "host": float(np.median(calls)) / 1e3 if len(calls) else 0.0,
    }


def _python(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """The program's own, where Python's frames tell it from PyTorch's, which nobody can do without."""
    if not len(operators_in_window(trace)):  # where they are can't be told from a trace without any
        return
    # Our own marks, writing checkpoints and collecting garbage have diagnoses of their own.
    gaps = run.parts[TimePart.OTHER] - trace.moments(marks(trace, OUR_MARKS))
    gaps = gaps - trace.moments(saves(trace)) - moments_like(trace, COLLECTING)
    least, summary, remedies = LEAST_SHARE_OF_ALL_PYTHON, _ALL_PYTHON_SUMMARY, [_LARGER, _PYTHON_REMEDY]
    if len(trace.python):
        least, summary, remedies = LEAST_SHARE, _PYTHON_SUMMARY, [_PYTHON_REMEDY]
        gaps = _in_the_program(trace, gaps)
    share = share_without_profiler(run, trace, gaps)
    if share < least:
        return
    title, *only = _cause(trace, gaps) or (_PYTHON_TITLE,)
    evidence = _by_python(trace, gaps)
    yield Diagnosis(ID, title, summary.format(share=share), share, tuple(only or remedies), evidence)


def _cause(trace: Trace, gaps: Intervals) -> tuple[Text, Text] | None:
    """Title and remedy, where one thing that Python does takes most of the gaps."""
    for pattern, title, remedy in (
        (SLEEPING, _SLEEP_TITLE, _SLEEP_REMEDY),
        (PREPARING, _PREPARE_TITLE, _PREPARE_REMEDY),
    ):
        if (moments_like(trace, pattern) & gaps).total > _MOSTLY * gaps.total:
            return title, remedy
    return None


def _in_the_program(trace: Trace, gaps: Intervals) -> Intervals:
    """The gaps in whose middle no function of PyTorch's is at work."""
    frames = trace.frames
    # 1: a function of the program, or of a library other than PyTorch; -1: of PyTorch; 0: its caller tells
    tells = np.array(
        [1 if place_of(name) else -1 if _OF_TORCH.search(name) else 0 for name in trace.names], np.int64
    )
    middle = (gaps.start + gaps.end) // 2
    rows = frames.enclosing(np.full(len(middle), _busiest_thread(trace), np.int64), middle)
    while (undecided := (rows >= 0) & (tells[frames.events.name[rows]] == 0)).any():
        rows = np.where(undecided, frames.parent[rows], rows)
    own = (rows >= 0) & (tells[frames.events.name[rows]] > 0)
    return Intervals(gaps.start[own], gaps.end[own])


def _by_operators(trace: Trace, gaps: Intervals) -> tuple[Evidence, ...]:
    """How much of the gaps lies in each of the program's own calls."""
    rows = trace.host_calls.outermost(np.flatnonzero(trace.host.kind == EventKind.OPERATOR))
    time = gaps.covered(trace.host.start[rows], trace.host.end[rows])
    rows, time = rows[time > 0], time[time > 0]
    around = _marks_around(trace, rows)
    # The place of each name in each mark is that of its longest call.
    calls = trace.host.take(rows)
    groups, group = np.unique(calls.name * (len(trace.names) + 1) + around + 1, return_inverse=True)
    longest = np.zeros(len(groups), np.int64)
    order = np.argsort(-time, kind="stable")[::-1]
    longest[group[order]] = order  # the last one stays
    group_places = trace.places(rows[longest])
    places = [group_places[at] for at in group.tolist()]
    mark_names = [*trace.names, ""]
    details = [mark_names[mark] for mark in around.tolist()]
    return added_up(trace, names_of(trace, calls.name), places, time, calls.start, details, MOST)


def _marks_around(trace: Trace, rows: Ints) -> Ints:
    """The name of the innermost annotation that a row lies in; -1: none but the step's."""
    wanted = ~trace.names_that(is_profiler_step)
    above = trace.parent[rows]
    found = np.full(len(rows), -1, np.int64)
    while (above >= 0).any():
        name = trace.host.name[above]
        hit = (above >= 0) & (found < 0) & (trace.host.kind[above] == EventKind.ANNOTATION) & wanted[name]
        found = np.where(hit, name, found)
        above = np.where(above >= 0, trace.parent[above], -1)
    return found


def _by_python(trace: Trace, gaps: Intervals) -> tuple[Evidence, ...]:
    """The gaps between operators, by the line that was at work in the middle of each."""
    between = gaps - trace.moments(trace.host.where(EventKind.OPERATOR))
    if not len(between.start):
        return ()
    middle = (between.start + between.end) // 2
    length = between.end - between.start
    places = trace.places_at(np.full(len(middle), _busiest_thread(trace), np.int64), middle)
    names = [_BETWEEN] * len(length)
    for pattern, name in ((SLEEPING, _SLEEPS), (PREPARING, _PREPARES)):
        covered = moments_like(trace, pattern).covered(between.start, between.end)
        for at in np.flatnonzero(covered > _MOSTLY * length).tolist():
            names[at] = name
    return added_up(trace, names, places, length, between.start, most=MOST)


def _busiest_thread(trace: Trace) -> int:
    """The one that calls most: the program's."""
    calls = trace.python if len(trace.python) else trace.host
    return int(np.bincount(calls.thread).argmax()) if len(calls) else 0


DETECTOR = trace_detector(ID, detect)
