"""torch.autograd's search for NaN is on: a check, and a wait, after every step of the backward pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.evidence import by_name_and_place
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Flags, Ints
from torchferry.traces.model import Trace

ID = "anomaly_detection"
LEAST_CHECKED = 0.5  # of the functions that autograd evaluates; all but those without result are checked

_TITLE = Text("Anomaly detection is on", "异常检测（detect_anomaly）处于开启状态")
_SUMMARY = Text(
    "Autograd checks the results of {checked} functions for NaN; the checks take {share:.1%} of the "
    "time, and each waits for the device.",
    "autograd 对 {checked} 个函数的结果检查 NaN，占时间的 {share:.1%}，且每次都要等待设备。",
)
_REMEDY = Text(
    "Remove torch.autograd.detect_anomaly and set_detect_anomaly; `ferry watch` finds NaN with "
    "little overhead.",
    "去掉 torch.autograd.detect_anomaly 与 set_detect_anomaly；`ferry watch` 以很小代价查找 NaN。",
)
_BASIS = Text(
    "the checks in the backward pass; in addition, the forward pass no longer stores stack traces",
    "反向过程中的检查；此外前向不再保存调用栈",
)
_EVALUATES = "autograd::engine::evaluate_function"
_ACCUMULATES = "AccumulateGrad"
_CHECKS = ("aten::isnan", "aten::ne")
_READS = ("aten::_is_any_true", "aten::any", "aten::item", "aten::is_nonzero")


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the checks that lie right in autograd's functions."""
    names = [
        number for number in trace.name_ids(prefix=_EVALUATES) if _ACCUMULATES not in trace.names[number]
    ]
    evaluated = np.isin(trace.host.name, names) & trace.in_window(trace.host)
    parts = _children(trace, evaluated, _CHECKS)
    checked = len(np.unique(trace.parent[parts]))
    if not checked or checked < LEAST_CHECKED * int(evaluated.sum()):
        return
    rows = np.concatenate([parts, _children(trace, evaluated, _READS)])
    share = trace.share_of(trace.host.take(rows))
    summary, evidence = _SUMMARY.format(checked=checked, share=share), by_name_and_place(trace, rows)
    yield Diagnosis(ID, _TITLE, summary, share, (_REMEDY,), evidence, gain=share, gain_basis=_BASIS)


def _children(trace: Trace, of: Flags, names: tuple[str, ...]) -> Ints:
    rows = trace.host_rows(*names)
    above = trace.parent[rows]
    return rows[(above >= 0) & of[above]]


DETECTOR = trace_detector(ID, detect)
