"""The optimizer calls its operators for each parameter by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from torchferry.perf.detect.events import is_on_host, lies_in, marks, per_step
from torchferry.perf.detect.evidence import added_up, names_of
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis, TimePart
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Columns, Ints
from torchferry.traces.model import Trace
from torchferry.vendors.model import Vendor

ID = "unfused_optimizer"
MARK = "Optimizer.step#"
LEAST_CALLS = 20  # per step; below that there is nothing to put together
SINGLE_OVER_WHOLE = 3  # calls for one parameter, for each call for many: some optimizers need a few beside
LEAST_GAIN = 0.01  # of the steps, on a device
LEAST_SHARE = 0.03  # of the steps, on the host

_TITLE = Text("The optimizer updates parameters one by one", "优化器逐个参数更新")
_SUMMARY = Text(
    "{optimizer} calls {calls:.0f} operators per step for about {parameters:.0f} parameters; its steps take {share:.1%} "
    "of the time.",
    "{optimizer} 每步为约 {parameters:.0f} 个参数调用 {calls:.0f} 个算子，占时间的 {share:.1%}。",
)
_FUSED = Text(
    "Set fused=True for {optimizer}, or foreach=True if it has no fused variant: a few operators "
    "update all parameters.",
    "为 {optimizer} 设置 fused=True，没有融合实现时设置 foreach=True：少数几个算子更新全部参数。",
)
_FUSED_ON_HOST = Text(
    "Set fused=True for {optimizer} (torch 2.4 or later on the CPU): one pass over all parameters.",
    "为 {optimizer} 设置 fused=True（CPU 需 torch 2.4 及以上）：一次遍历全部参数。",
)
_VENDORS = Text(
    "The vendor's own fused variant is {module}.{name}.", "厂商自带的融合实现为 {module}.{name}。"
)
_AFFINITY = Text(
    'torchferry.perf.affinity.fused_optimizer("{optimizer}", ...) picks the fastest variant on the device.',
    'torchferry.perf.affinity.fused_optimizer("{optimizer}", ...) 自动选用设备上最快的实现。',
)
_BASIS = Text(
    "an estimate: the time for which the device waits for the optimizer's calls, plus all but one of "
    "its {passes:.0f} passes over the parameters",
    "估计值：设备等待优化器下发的时间，加上对参数的 {passes:.0f} 次遍历中多于一次的部分",
)
_SINGLE = re.compile(
    r"^aten::(?:add|sub|mul|div|sqrt|rsqrt|addcmul|addcdiv|lerp|neg|sign|maximum|pow|copy|clamp|zero|norm|clone|fill)_?$"
)
_WHOLE = re.compile(r"^\w+::\w*(?:_foreach_|fused|multi_tensor|apply)", re.IGNORECASE)
_ACCUMULATE = "torch::autograd::AccumulateGrad"
_NAME = re.compile(r"Optimizer\.step#(\w+)")


class _OptimizerCalls(NamedTuple):
    steps: Columns
    single: Ints  # rows of `host`
    whole: int
    parameters: float  # per step


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By what lies right in the marks of optimizers."""
    calls = _calls(trace)
    count = per_step(trace, len(calls.single))
    if count < LEAST_CALLS or len(calls.single) < SINGLE_OVER_WHOLE * calls.whole or count < calls.parameters:
        return
    share = trace.share_of(calls.steps)
    passes = count / calls.parameters if calls.parameters else 1.0
    gain = None
    if not trace.is_host_only:
        waiting = int(run.parts[TimePart.HOST].covered(calls.steps.start, calls.steps.end).sum())
        computing = float(trace.device_time[calls.single].sum())
        gain = trace.share(waiting + computing * (1 - 1 / max(passes, 1.0)))
    on_host = is_on_host(trace, run.device)
    if (gain is not None and gain < LEAST_GAIN) or (on_host and share < LEAST_SHARE):
        return
    # The class that takes most of the time.
    name = _NAME.match(trace.names[int(np.bincount(calls.steps.name, weights=calls.steps.duration).argmax())])
    optimizer = name[1] if name else "The optimizer"
    summary = _SUMMARY.format(optimizer=optimizer, calls=count, parameters=calls.parameters, share=share)
    # The place of the first of them is that of all: the line that calls step().
    single = trace.host.take(calls.single)
    places = trace.places(calls.single[:1]) * len(single)
    evidence = added_up(trace, names_of(trace, single.name), places, single.duration, single.start)
    remedies, basis = _remedies(optimizer, on_host, run.vendor), _BASIS.format(passes=passes)
    yield Diagnosis(ID, _TITLE, summary, share, remedies, evidence, gain, None if gain is None else basis)


def _calls(trace: Trace) -> _OptimizerCalls:
    # The last thing that a backward pass does for a parameter.
    accumulated = trace.of_window(trace.host.take(trace.host_rows(_ACCUMULATE)))
    steps = _without_closures(marks(trace, MARK), accumulated)
    above = trace.parent
    in_step = (above >= 0) & np.isin(trace.host.name[above], trace.name_ids(prefix=MARK))
    rows = np.flatnonzero(in_step & lies_in(trace.host.thread, trace.host.start, steps))
    names = trace.host.name[rows]
    single = rows[np.isin(names, trace.names_like(_SINGLE))]
    whole = int(np.isin(names, trace.names_like(_WHOLE)).sum())
    # Every parameter has its turn with each operator, some twice; gradients may be accumulated several times.
    _, counts = np.unique(trace.host.name[single], return_counts=True)
    typical = float(np.median(counts)) if len(counts) else 0.0
    parameters = min(len(accumulated), typical) if len(accumulated) else typical
    return _OptimizerCalls(steps, single, whole, per_step(trace, parameters))


def _without_closures(steps: Columns, accumulated: Columns) -> Columns:
    """From the last backward pass in each on: step(closure) computes the loss and its gradients first."""
    if not len(accumulated):
        return steps
    ends = np.sort(accumulated.end)
    last = ends[np.maximum(np.searchsorted(ends, steps.end, side="right") - 1, 0)]
    begins = np.where((last > steps.start) & (last <= steps.end), last, steps.start)
    return replace(steps, start=begins, duration=steps.end - begins)


def _remedies(optimizer: str, on_host: bool, vendor: Vendor | None) -> tuple[Text, ...]:
    if on_host:
        return (_FUSED_ON_HOST.format(optimizer=optimizer),)
    remedies = [_FUSED.format(optimizer=optimizer)]
    for name in vendor.fused_optimizers if vendor is not None else ():
        if vendor is not None and name.lower().endswith(f"fused{optimizer}".lower()):
            remedies.append(_VENDORS.format(module=vendor.fused_optimizer_module, name=name))
    return (*remedies, _AFFINITY.format(optimizer=optimizer))


DETECTOR = trace_detector(ID, detect)
