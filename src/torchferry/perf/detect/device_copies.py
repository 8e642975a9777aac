"""The device copies its own tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.conversions import Copied, callers, copied
from torchferry.perf.detect.events import operators_in_window
from torchferry.perf.detect.evidence import (
    FoundKernels,
    by_name_and_place,
    end_of_calls,
    found_in_table,
    found_in_trace,
    needs_work_or_types,
)
from torchferry.perf.detect.model import Detector
from torchferry.perf.detect.non_contiguous import contiguous_copies
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Flags, Ints
from torchferry.traces.model import Trace

ID = "device_copies"
LEAST_SHARE = 0.03  # of the steps
_NAME = re.compile(
    r"DtoD|PtoP|Device -> Device|D2DCopy|PTCopy|format_contiguous|"
    r"(?:^|_)(?:ViewCopy|TensorMove|AsStrided)(?:AiC\w+)?(?:_\w+?)?[\d_]*$"
)

_TITLE = Text("The device copies its own tensors", "设备在拷贝自己的张量")
_SUMMARY = Text(
    "{count} device-to-device copies take {share:.1%} of the time of a step.",
    "{count} 次设备到设备的拷贝占单步时间的 {share:.1%}。",
)
_AVOID = Text(
    "Remove .clone(), torch.cat and copy_ where a view is enough; write results in place (out=, "
    "preallocated tensors); give DistributedDataParallel gradient_as_bucket_view=True.",
    "可用视图之处去掉 .clone()、torch.cat 与 copy_；把结果直接写入目标（out=、预分配张量）；为 "
    "DistributedDataParallel 设置 gradient_as_bucket_view=True。",
)
_ORDER = Text(
    "Many come from views that operators can't read: record with record_shapes=True, and "
    "`non_contiguous` names the tensors.",
    "多因算子不能读取视图：以 record_shapes=True 采集后，`non_contiguous` 会指出是哪些张量。",
)
_BASIS = Text("the time of the copies, if all can be removed", "拷贝所用的时间，若全部可省去")


def detect(run: Run) -> Iterator[Diagnosis]:
    """By the names of the device's work; copies for the sake of order are left to their own detector."""
    calls, share, evidence = _found(run)
    if share >= LEAST_SHARE:
        has_strides = run.trace is not None and run.trace.has_strides
        summary = _SUMMARY.format(count=calls, share=share)
        remedies = (_AVOID,) if has_strides else (_AVOID, _ORDER)
        yield Diagnosis(ID, _TITLE, summary, share, remedies, evidence, gain=share, gain_basis=_BASIS)


def _found(run: Run) -> FoundKernels:
    trace = run.trace
    if trace is None:
        assert run.kernels is not None
        table = run.kernels
        wanted = [number for number, text in enumerate(table.texts) if _NAME.search(text)]
        return found_in_table(table, np.isin(table.type, wanted) | np.isin(table.name, wanted))
    if trace.is_host_only:
        on_host = _clones(trace)
    else:  # rows of `host` that old plugins named so
        rows = operators_in_window(trace)
        wanted = [number for number in trace.names_like(_NAME) if "::" not in trace.names[number]]
        on_host = rows[np.isin(trace.host.name[rows], wanted)]
    if trace.is_host_only or len(on_host):
        share = trace.share_of(trace.host.take(on_host))
        return FoundKernels(len(on_host), share, by_name_and_place(trace, on_host))
    rows = np.flatnonzero(np.isin(trace.device.name, trace.names_like(_NAME)))
    return found_in_trace(trace, rows[~_is_for_order(trace, rows)])


def _is_for_order(trace: Trace, rows: Ints) -> Flags:
    """Which rows of `device` were launched to make a tensor contiguous."""
    _, above = contiguous_copies(trace)
    last = end_of_calls(trace, above)
    marks = np.zeros(len(trace.host) + 1, np.int64)
    np.add.at(marks, above, 1)
    np.add.at(marks, last, -1)
    inside = np.cumsum(marks)[:-1] > 0
    return (trace.owner[rows] >= 0) & inside[trace.owner[rows]]


def _clones(trace: Trace) -> Ints:
    """Where the host computes: clones that change nothing, whose order was good already."""
    rows = operators_in_window(trace)
    rows = rows[np.isin(trace.host.name[rows], trace.name_ids("aten::copy_"))]
    numbers = np.unique(trace.host.signature[rows]).tolist()
    same = [number for number in numbers if copied(trace.signature(number)) is Copied.NOTHING]
    rows = rows[np.isin(trace.host.signature[rows], same)]
    above = callers(trace, rows)
    return np.unique(above[np.isin(trace.host.name[above], trace.name_ids("aten::clone"))])


DETECTOR = Detector(ID, needs_work_or_types, detect)
