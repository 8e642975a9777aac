"""The device spends its time on changing formats, types and the order of dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.conversions import (
    CHANGES,
    Change,
    Copied,
    callers,
    copies,
    device_changes,
    table_changes,
)
from torchferry.perf.detect.evidence import (
    FoundKernels,
    added_up,
    all_described,
    found_in_table,
    found_in_trace,
    names_of,
    needs_work_or_types,
)
from torchferry.perf.detect.model import Detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "format_conversion"
LEAST_SHARE = 0.05  # of the steps; mixed precision casts for one or two hundredths, and is worth it

_TITLE = Text("Formats and dtypes are converted", "格式与数据类型转换耗时")
_SUMMARY = Text(
    "{count} conversions take {share:.1%} of the time of a step: {format:.1%} change the format, "
    "{type:.1%} the dtype, {order:.1%} the order of dimensions.",
    "{count} 次转换占单步时间的 {share:.1%}：格式 {format:.1%}，数据类型 {type:.1%}，维度次序 {order:.1%}。",
)
_REMEDIES = {
    Change.FORMAT: Text(
        "Formats: use the same format in neighboring operators. Give models and inputs one memory format "
        "(model.to(memory_format=torch.channels_last), or none at all); move the operator between two "
        "conversions elsewhere, or convert once before several operators.",
        "格式：让相邻算子使用同一格式。"
        "模型与输入统一内存格式（model.to(memory_format=torch.channels_last)，或完全不用）；"
        "把夹在两次转换之间的算子移出，或在多个算子之前只转换一次。",
    ),
    Change.TYPE: Text(
        "Dtypes: cast once, not in every step: constants, masks and labels when they are created, inputs "
        "in the loader; keep half-precision code inside one autocast region.",
        "数据类型：只转换一次，不要每步都转：常量、掩码和标签在生成时转换，输入在加载时转换；"
        "半精度的部分放在同一个 autocast 区域内。",
    ),
    Change.ORDER: Text(
        "Order: avoid permute and transpose before operators that take dimensions as arguments; prefer "
        "einsum, or matmul with a transposed argument.",
        "次序：能以参数指定维度的算子之前不要 permute 或 transpose；优先用 einsum，或以转置参数调用 matmul。",
    ),
}


_WEIGHTS = Text(
    "Weights (TransData): after model.to(device), cast them once to the format of the device's "
    "kernels: `torchferry.perf.affinity.cast_weights(model)`. On Ascend this casts Conv2d to "
    "FRACTAL_Z and Linear to NZ through torch_npu.npu_format_cast; current plugins keep such formats "
    "only with torch.npu.config.allow_internal_format = True.",
    "权重（TransData）：在 model.to(device) 之后一次转换为设备 kernel 的格式："
    "`torchferry.perf.affinity.cast_weights(model)`。在 Ascend 上会通过 torch_npu.npu_format_cast 将 "
    "Conv2d 转为 FRACTAL_Z、Linear 转为 NZ；当前插件须设置 torch.npu.config.allow_internal_format = "
    "True 才保留这些格式。",
)


def detect(run: Run) -> Iterator[Diagnosis]:
    """By the names of kernels and the inputs of copies."""
    found, shares = _found(run)
    if found.share < LEAST_SHARE:
        return
    figures = {change.value: shares[change] for change in CHANGES}
    summary = _SUMMARY.format(count=found.calls, share=found.share, **figures)
    wanted = sorted((change for change in CHANGES if shares[change]), key=lambda change: -shares[change])
    remedies = [_REMEDIES[change] for change in wanted]
    # whether kernels convert between formats that only the device knows
    if any("transdata" in str(each.what).lower() for each in found.evidence):
        remedies.insert(0, _WEIGHTS)
    yield Diagnosis(ID, _TITLE, summary, found.share, tuple(remedies), found.evidence)


def _found(run: Run) -> tuple[FoundKernels, dict[Change, float]]:
    trace = run.trace
    if trace is None:
        assert run.kernels is not None
        table, changes = run.kernels, table_changes(run.kernels)
        shares = {
            change: table.share(float(table.duration[changes == at].sum()) / 1e9)
            for at, change in enumerate(CHANGES)
        }
        return found_in_table(table, changes >= 0), shares
    if trace.is_host_only:
        return _found_on_host(trace)
    changes = device_changes(trace)
    shares = {change: trace.share_of(trace.device.take(changes == at)) for at, change in enumerate(CHANGES)}
    return found_in_trace(trace, np.flatnonzero(changes >= 0)), shares


def _found_on_host(trace: Trace) -> tuple[FoundKernels, dict[Change, float]]:
    """Where the host computes, copies are all that changes formats and types."""
    by_change = {Change.TYPE: copies(trace, Copied.TYPE), Change.FORMAT: copies(trace, Copied.LAYOUT)}
    shares = dict.fromkeys(CHANGES, 0.0)
    for change, rows in by_change.items():
        shares[change] = trace.share_of(trace.host.take(callers(trace, rows)))
    rows = np.concatenate(list(by_change.values()))
    above = callers(trace, rows)
    calls = trace.host.take(above)
    names, inputs = names_of(trace, calls.name), all_described(trace, trace.host.signature[rows])
    evidence = added_up(trace, names, trace.places(above), calls.duration, calls.start, inputs)
    return FoundKernels(len(rows), trace.share_of(calls), evidence), shares


DETECTOR = Detector(ID, needs_work_or_types, detect)
