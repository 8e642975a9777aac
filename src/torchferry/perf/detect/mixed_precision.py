"""Matrix products and convolutions in float32 on a device that is faster in half precision."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import is_on_host, operators_in_window
from torchferry.perf.detect.evidence import MOST, as_evidence, groups_of, work_time
from torchferry.perf.detect.model import NO_SHAPES, Detector
from torchferry.perf.model import Diagnosis, Evidence
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import KernelTable
from torchferry.text import Text
from torchferry.traces.columns import Ints
from torchferry.traces.model import Trace, TraceSignature
from torchferry.traces.names import operator_of

ID = "mixed_precision"
LEAST_SHARE = 0.10  # of the steps: below that half precision is not worth the care it asks for
GAIN = 0.5  # of that time: the bytes are halved; matrix units are faster still, their inputs' casts cost some
FIRST_WITH_MATRIX_UNITS = 7  # the compute capability of CUDA devices

_TITLE = Text("Mixed precision is not used", "未使用混合精度")
_SUMMARY = Text(
    "float32 matrix products and convolutions take {share:.1%} of the time; the device supports "
    "{dtypes} for them.",
    "float32 的矩阵乘与卷积占时间的 {share:.1%}；设备可用 {dtypes} 计算。",
)
_UNTIMED = Text(
    "{calls} matrix products and convolutions are in float32; the device supports {dtypes} for them. "
    "This trace has no device times, so the cost is unknown.",
    "有 {calls} 次矩阵乘与卷积为 float32；设备可用 {dtypes} 计算。此 trace 没有设备时间，无法给出代价。",
)
_REMEDY = Text(
    'Run forward pass and loss under `torch.autocast("{device}", torch.{dtype})`, and with float16 '
    "scale the loss with GradScaler; `ferry convert --amp` writes both. `ferry watch` shows whether "
    "training stays healthy.",
    '把前向与损失放入 `torch.autocast("{device}", torch.{dtype})`，float16 时用 GradScaler '
    "缩放损失；`ferry convert --amp` 可自动改写。`ferry watch` 可检查训练是否正常。",
)
_BASIS = Text(
    "an estimate: half of the time of these operators, because half precision moves half the bytes",
    "估计值：这些算子时间的一半，因为半精度只需搬运一半的字节",
)
_MATRIX_OPERATOR = re.compile(
    r"\w+::\w*(?:mm|conv\w*|linear|matmul|baddbmm|addbmm|scaled_dot_product\w*|flash_attention\w*|einsum|bilinear)"
    r"(?:_backward\w*|_overrideable\w*|_transpose\w*)?$",
    re.IGNORECASE,
)
_MATRIX_KERNEL = re.compile(r"matmul|conv[23]d|convolution|gemm|flashattention", re.IGNORECASE)
_SINGLE = "float"
_SINGLE_IN_TABLES = ("FLOAT", "DT_FLOAT", "FLOAT32")


def lacks(run: Run) -> Text | None:
    """The types of inputs, from a trace or a table."""
    return None if run.kernels is not None or (run.trace is not None and run.trace.has_shapes) else NO_SHAPES


def detect(run: Run) -> Iterator[Diagnosis]:
    """By the types of what went in."""
    dtypes = _half_types(run)
    if not dtypes or run.rank_facts.get("autocast") is True:
        return
    if run.trace is not None and run.trace.has_shapes:
        yield from _in_trace(run, run.trace, dtypes)
    elif run.kernels is not None:
        yield from _in_table(run, run.kernels, dtypes)


def _half_types(run: Run) -> tuple[str, ...]:
    """That the device computes faster in; empty: none, or not known."""
    if run.vendor is not None:
        return run.vendor.amp_dtypes
    if run.trace is None or is_on_host(run.trace, run.device):
        return ()
    properties = run.trace.about.get("deviceProperties")
    first = properties[0] if isinstance(properties, list) and properties else {}
    major = first.get("computeMajor") if isinstance(first, dict) else None
    if not isinstance(major, int) or major < FIRST_WITH_MATRIX_UNITS:
        return ()
    return ("float16",) if major == FIRST_WITH_MATRIX_UNITS else ("bfloat16", "float16")


def _in_trace(run: Run, trace: Trace, dtypes: tuple[str, ...]) -> Iterator[Diagnosis]:
    if is_on_host(trace, run.device):
        return
    rows = _single_rows(trace)
    time = work_time(trace)[rows]
    rows, time = rows[time > 0], time[time > 0]
    share = trace.share(int(time.sum()))
    if share < LEAST_SHARE:
        return
    evidence = tuple(as_evidence(trace, group) for group in groups_of(trace, rows, time)[:MOST])
    if trace.is_host_only:
        summary = _UNTIMED.format(calls=len(rows), dtypes=", ".join(dtypes))
        yield Diagnosis(ID, _TITLE, summary, 0.0, (_remedy(run, dtypes),), evidence)
    else:
        yield _diagnosis(run, share, dtypes, evidence)


def _single_rows(trace: Trace) -> Ints:
    """Operators on matrices whose inputs are float32."""
    rows = operators_in_window(trace)
    matrix = trace.names_that(lambda name: _MATRIX_OPERATOR.match(name) and operator_of(name))
    rows = rows[matrix[trace.host.name[rows]]]
    numbers = np.unique(trace.host.signature[rows]).tolist()
    single = [number for number in numbers if _is_single(trace.signature(number))]
    return rows[np.isin(trace.host.signature[rows], single)]


def _is_single(signature: TraceSignature) -> bool:
    """Whether the tensors are float32: the first two that have a size."""
    types = [
        kind
        for kind, dims in zip(signature.types, signature.dims, strict=False)
        if isinstance(kind, str) and dims
    ]
    return bool(types) and all(kind == _SINGLE for kind in types[:2])


def _in_table(run: Run, table: KernelTable, dtypes: tuple[str, ...]) -> Iterator[Diagnosis]:
    groups = [
        group
        for group in table.groups
        if _MATRIX_KERNEL.search(group.type or group.name)
        and all(
            dtype.strip().upper() in _SINGLE_IN_TABLES
            for dtype in group.signature.input_dtypes.split(";")[:2]
        )
    ]
    share = table.share(sum(group.seconds for group in groups))
    if share < LEAST_SHARE:
        return
    evidence = tuple(
        Evidence(
            group.type or group.name,
            f"{group.signature.input_shapes} float32",
            "",
            group.calls,
            group.seconds,
            table.share(group.seconds),
        )
        for group in groups[:MOST]
    )
    yield _diagnosis(run, share, dtypes, evidence)


def _diagnosis(run: Run, share: float, dtypes: tuple[str, ...], evidence: tuple[Evidence, ...]) -> Diagnosis:
    summary, remedies = _SUMMARY.format(share=share, dtypes=", ".join(dtypes)), (_remedy(run, dtypes),)
    return Diagnosis(ID, _TITLE, summary, share, remedies, evidence, gain=share * GAIN, gain_basis=_BASIS)


def _remedy(run: Run, dtypes: tuple[str, ...]) -> Text:
    return _REMEDY.format(device=run.device, dtype="bfloat16" if "bfloat16" in dtypes else dtypes[0])


DETECTOR = Detector(ID, lacks, detect)
