"""Operators that take far longer than the device needs for their shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from torchferry.perf.detect.events import operators_in_window
from torchferry.perf.detect.evidence import MOST, as_evidence, compute_time, groups_of, kernel_evidence
from torchferry.perf.detect.model import NO_DEVICE, NO_SHAPES, Detector
from torchferry.perf.model import Diagnosis, Evidence
from torchferry.perf.roofline import Measured, Peaks, best_of_alike, kernel_work, peaks_of, reached, work_of
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "slow_operator"
LEAST_SHARE = 0.02  # of the steps, of one operator with its shapes
LEAST_GAIN = 0.03  # of the steps, of all that are slow
SLOW = 0.3  # of what is possible: well-made kernels reach 0.5 to 0.8
REACHABLE = 0.6  # of what is possible: what the gain is worked out with
SLOW_BESIDE_OTHERS = 0.25  # of the speed of the fastest call of the same operator

_TITLE = Text("Operators are slow for their shapes", "算子对其形状而言过慢")
_KNOWN = Text(
    "Slow calls ({count} combinations of operator and shapes) take {share:.1%} of the time of a step "
    "and reach {reached} of what the device ({device}) can do; operations and bytes are computed "
    "from the shapes. Below: actual time / possible time.",
    "{count} 种算子（含形状）占单步时间的 {share:.1%}，只达到设备（{device}）能力的 {reached}："
    "运算量与字节数由形状推算。下列为实际时间 / 可能的时间。",
)
_UNKNOWN = Text(
    "Slow calls ({count} combinations of operator and shapes) take {share:.1%} of the time of a step "
    "and reach {reached} of the speed of the same operator with similar shapes in this run. The peak "
    "performance of this device is unknown, so nothing else was compared.",
    "{count} 种算子（含形状）占单步时间的 {share:.1%}，速度只有本次运行中同一算子相近形状的 "
    "{reached}。该设备的能力未知，因此没有与其他比较。",
)
_SHAPES = Text(
    "Use better shapes: channels, vocabularies and batches in multiples of 16 (64 on large devices), "
    "one large product instead of many small ones.",
    "改用更合适的形状：通道数、词表和批量取 16 的倍数（大型设备取 64 的倍数），用一次大的乘法代替许多小的。",
)
_LAYOUT = Text(
    "Use contiguous inputs in the memory format that the device prefers, and half precision where "
    "the model allows it.",
    "给它们连续的、设备偏好内存格式的输入，模型允许时用半精度。",
)
_FORMS = Text(
    "`torchferry.perf.affinity` has faster variants of some; `ferry case` creates a test of one "
    "operator with these shapes, to measure it separately or send it to the vendor.",
    "`torchferry.perf.affinity` 有部分算子的更快写法；`ferry case` 用这些形状为单个算子生成用例，"
    "可单独测量并提交给厂商。",
)
_BASIS = Text(
    "if each reaches {reachable:.0%} of what the device can do", "若每个算子都达到设备能力的 {reachable:.0%}"
)
_BASIS_BESIDE = Text(
    "if each is as fast as the fastest call of the same operator with similar shapes",
    "若每个算子都与同一算子相近形状的最快调用一样快",
)


class _Candidate(NamedTuple):
    measured: Measured
    evidence: Evidence


class _Slow(NamedTuple):
    evidence: Evidence
    reached: float  # of what is possible
    saved: float  # share of the steps


def lacks(run: Run) -> Text | None:
    """Shapes, and times of a device: those of a host vary with what else it does, those of a simulated one mean nothing."""
    if run.kernels is not None:
        return None
    if run.trace is not None and run.trace.has_shapes and not run.trace.is_host_only:
        return None
    return NO_DEVICE if run.trace is not None and run.trace.is_host_only else NO_SHAPES


def detect(run: Run) -> Iterator[Diagnosis]:
    """Compares times with the least that the shapes allow."""
    peaks = peaks_of(run.device_name)
    candidates: list[_Candidate] = []
    if run.trace is not None and run.trace.has_shapes and not run.trace.is_host_only:
        candidates = list(_of_trace(run.trace))
    elif run.kernels is not None:
        for group in run.kernels.groups:
            work = kernel_work(group.type, group.signature)
            if work is not None and work.nbytes:
                measured = Measured(group.type, work, group.seconds / group.calls)
                candidates.append(_Candidate(measured, kernel_evidence(run.kernels, group)))
    found = list(_slow_ones(candidates, peaks))
    gain = sum(each.saved for each in found)
    if gain < LEAST_GAIN:
        return
    share = sum(each.evidence.share for each in found)
    parts = [each.reached for each in found]
    low, high = f"{min(parts):.0%}", f"{max(parts):.0%}"
    reached_parts = Text(low, low) if low == high else Text(f"{low} to {high}", f"{low} 到 {high}")
    summary = (_KNOWN if peaks else _UNKNOWN).format(
        count=len(found), share=share, reached=reached_parts, device=run.device_name
    )
    shown = sorted(found, key=lambda each: -each.saved)[:MOST]
    evidence = tuple(each.evidence for each in shown)
    basis = _BASIS.format(reachable=REACHABLE) if peaks else _BASIS_BESIDE
    yield Diagnosis(ID, _TITLE, summary, share, (_SHAPES, _LAYOUT, _FORMS), evidence, gain, basis)


def _of_trace(trace: Trace) -> Iterator[_Candidate]:
    rows = operators_in_window(trace)
    time = compute_time(trace)
    rows = rows[(trace.host.signature[rows] >= 0) & (time[rows] > 0)]
    for group in groups_of(trace, rows, time[rows]):
        if trace.share(group.time) < LEAST_SHARE / 10:
            return  # those that follow are shorter
        work = work_of(group.operator, trace.signature(group.signature))
        if work is not None and work.nbytes:
            measured = Measured(group.operator, work, group.time / group.calls / 1e9)
            yield _Candidate(measured, as_evidence(trace, group))


def _slow_ones(candidates: list[_Candidate], peaks: Peaks | None) -> Iterator[_Slow]:
    """Beside what the device can do, or where that is not known beside each other."""
    all_measured = [each.measured for each in candidates]
    limit, reachable = (SLOW, REACHABLE) if peaks else (SLOW_BESIDE_OTHERS, 1.0)
    for measured, evidence in candidates:
        if evidence.share < LEAST_SHARE:
            continue
        seconds = measured.seconds
        if peaks:
            part = reached(measured.work, seconds, peaks)
        else:
            part = best_of_alike(measured, all_measured) / seconds
        if part is None or part >= limit:
            continue
        remark = f"{seconds * 1e6:.0f} µs / {seconds * part * 1e6:.0f} µs ({part:.0%})"
        assert isinstance(evidence.detail, str)  # shapes and types
        detail = "; ".join(filter(None, (evidence.detail, remark)))
        yield _Slow(replace(evidence, detail=detail), part, evidence.share * (1.0 - part / reachable))


DETECTOR = Detector(ID, lacks, detect)
