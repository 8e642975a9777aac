"""Operators run on the device's own slow processor, which is there for what its fast cores cannot do."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.evidence import found_in_table, found_in_trace, needs_device_work
from torchferry.perf.detect.model import Detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Flags
from torchferry.traces.model import Trace

ID = "ai_cpu"
LEAST_SHARE = 0.005  # of the steps; a call takes some hundred times what it takes on the fast cores
_CORE = re.compile(r"AI[_ ]?CPU", re.IGNORECASE)
_NAME = re.compile(r"AiCpu|AICPU")

_TITLE = Text("Operators run on the AI CPU", "算子运行在 AI CPU 上")
_SUMMARY = Text(
    "{count} kernels run on the AI CPU of the device and take {share:.1%} of the time of a step.",
    "{count} 个 kernel 运行在设备的 AI CPU 上，占单步时间的 {share:.1%}。",
)
_TYPES = Text(
    "Most run there because of their dtype: 64-bit integers, float64 or complex. Cast such tensors "
    "to int32 or float32 before the operator; for labels use `torchferry.perf.affinity` (cross "
    "entropy with int32 labels).",
    "多因数据类型所致：int64、float64 和复数。在算子之前转换为 int32 或 float32；标签可用 "
    "`torchferry.perf.affinity`（int32 标签的交叉熵）。",
)
_OTHERS = Text(
    "Otherwise write them with other operators: `ferry ops` lists what the device supports, `ferry "
    "case` creates a test of one operator that you can send to the vendor.",
    "否则改用其他算子：`ferry ops` 列出设备支持的算子，`ferry case` 为单个算子生成可提交给厂商的用例。",
)


def on_ai_cpu(trace: Trace) -> Flags:
    """Which rows of `device` are work of the AI CPU."""
    cores = [number for number, core in enumerate(trace.cores) if _CORE.search(core)]
    return np.isin(trace.device.core, cores) | np.isin(trace.device.name, trace.names_like(_NAME))


def detect(run: Run) -> Iterator[Diagnosis]:
    """By the part of the device that the profiler names, or the name of the kernel."""
    if run.trace is not None and not run.trace.is_host_only:
        found = found_in_trace(run.trace, np.flatnonzero(on_ai_cpu(run.trace)))
    else:
        assert run.kernels is not None
        cores = [number for number, text in enumerate(run.kernels.texts) if _CORE.search(text)]
        found = found_in_table(run.kernels, np.isin(run.kernels.core, cores))
    if found.share >= LEAST_SHARE:
        summary = _SUMMARY.format(count=found.calls, share=found.share)
        yield Diagnosis(ID, _TITLE, summary, found.share, (_TYPES, _OTHERS), found.evidence)


DETECTOR = Detector(ID, needs_device_work, detect)
