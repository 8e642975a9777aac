"""Operators or graphs are compiled although the program has warmed up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import outermost
from torchferry.perf.detect.evidence import MOST, by_frame
from torchferry.perf.detect.model import Detector
from torchferry.perf.model import Diagnosis, Evidence
from torchferry.perf.oplog.model import OpLog
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Columns, Flags, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.model import Trace

ID = "recompiles"
LEAST_SHARE = 0.005  # of the steps; after the warm-up there should be none
WARM = 3  # steps that came before the first one of the trace
_COMPILES = re.compile(
    r"op_?compile(?!AndExecute)|\(dynamo_timed\)|_dynamo/convert_frame\.py\(\d+\): _?compile|"
    r"_inductor/compile_fx\.py\(\d+\): compile_fx\b|triton/compiler/compiler\.py\(\d+\): compile\b",
    re.IGNORECASE,
)
_MAY_COMPILE = re.compile(r"opCompileAndExecute", re.IGNORECASE)
_LONG = 1_000_000  # nanoseconds: an operator that is there already is found in some microseconds
_TIMES_USUAL = 10

_TITLE = Text("Operators are compiled after the warm-up", "预热之后仍在编译")
_SUMMARY = Text(
    "{count} compiles in the steps after the warm-up take {share:.1%} of the time of a step.",
    "预热之后的步中有 {count} 次编译，占单步时间的 {share:.1%}。",
)
_LOG_SUMMARY = Text(
    "The host log shows {count} compiles after the warm-up, at least {seconds:.1f} s of compile time.",
    "主机日志中预热之后有 {count} 次编译，已知耗时 {seconds:.1f} 秒。",
)
_SHAPES = Text(
    "New shapes and new argument values cause compiles: pad to fixed sizes, drop the last, smaller "
    "batch, and pass changing numbers as tensors.",
    "引发编译的是新的形状和新的参数值：填充到固定尺寸，丢弃最后较小的批次，把变化的数值以张量传入。",
)
_MODES = Text(
    "With torch.compile, set dynamic=True; TORCH_LOGS=recompiles shows the reasons. For a vendor's "
    "runtime, `ferry doctor host` shows the compile mode, and `ferry oplog` how often each operator "
    "was compiled.",
    "使用 torch.compile 时可设 dynamic=True，TORCH_LOGS=recompiles 会说明原因。对于厂商运行时，"
    "`ferry doctor host` 给出编译模式，`ferry oplog` 给出各算子的编译次数。",
)
_BASIS = Text("the time of the compiles", "编译所用的时间")
_NUMBER = Text("shapes: {count}", "形状：{count} 种")
_NEITHER = Text("a trace or host logs", "trace 或主机日志")


def lacks(run: Run) -> Text | None:
    """A trace or a log must be there."""
    return _NEITHER if run.trace is None and run.oplog is None else None


def detect(run: Run) -> Iterator[Diagnosis]:
    """By calls that compile, in steps that come after others; by the log where there is one."""
    if run.trace is not None:
        yield from _in_trace(run.trace)
    if run.oplog is not None and run.oplog.recompiles:
        yield _in_log(run.oplog)


def _in_trace(trace: Trace) -> Iterator[Diagnosis]:
    found = [_compiles(trace, events) for events in (trace.runtime, trace.host, trace.python)]
    events = Columns.joined([part for part in found if len(part)])
    # Compiling is many calls one in another.
    outer = outermost(events.take(_is_warm(trace, events.start)))
    share = trace.share_of(outer)
    if share >= LEAST_SHARE:
        summary, evidence = _SUMMARY.format(count=len(outer), share=share), by_frame(trace, outer)
        yield Diagnosis(
            ID, _TITLE, summary, share, (_SHAPES, _MODES), evidence, gain=share, gain_basis=_BASIS
        )


def _compiles(trace: Trace, events: Columns) -> Columns:
    numbers = np.unique(events.name).tolist()
    sure = [number for number in numbers if _COMPILES.search(trace.names[number])]
    wanted = np.isin(events.name, sure)
    for number in (number for number in numbers if _MAY_COMPILE.search(trace.names[number])):
        mine = events.name == number
        usual = float(np.median(events.duration[mine]))
        wanted |= mine & (events.duration > max(_LONG, _TIMES_USUAL * usual))
    return events.take(wanted)


def _is_warm(trace: Trace, start: Ints) -> Flags:
    """Which moments lie in a step that comes after others."""
    steps = trace.steps
    first = 0 if len(steps) and steps.basis == "profiler" and int(steps.number[0]) > WARM else 1
    return Intervals.union(steps.start[first:], steps.end[first:]).holds(start)


def _in_log(log: OpLog) -> Diagnosis:
    """A log knows no steps: its share is of the time of its processes."""
    spans = [
        process.last - process.first
        for process in log.processes
        if process.first is not None and process.last is not None
    ]
    total = max(spans, default=0.0) * max(len(spans), 1)
    share = min(log.recompile_seconds / total, 1.0) if total else 0.0
    again = sorted((each for each in log.operators if each.recompiles), key=lambda each: -each.recompiles)
    evidence = tuple(
        Evidence(
            operator.type,
            _NUMBER.format(count=operator.shapes),
            count=operator.recompiles,
            seconds=operator.compile_seconds * operator.recompiles / max(operator.compiles, 1),
        )
        for operator in again[:MOST]
    )
    summary = _LOG_SUMMARY.format(count=len(log.recompiles), seconds=log.recompile_seconds)
    gain, basis = (share, _BASIS) if share else (None, None)
    return Diagnosis(ID, _TITLE, summary, share, (_SHAPES, _MODES), evidence, gain, basis)


DETECTOR = Detector(ID, lacks, detect)
