"""Tensors are copied because their elements do not lie one behind the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.conversions import (
    Copied,
    callers,
    copied,
    copies,
    is_part_of_operator,
    moves_between_devices,
)
from torchferry.perf.detect.evidence import added_up, names_of, whole_time
from torchferry.perf.detect.model import NO_STRIDES, needs_trace, trace_detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.roofline import tensor
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Ints
from torchferry.traces.model import Trace

ID = "non_contiguous"
LEAST_SHARE = 0.03  # of the steps; a few transposed tensors are copied in most models

_TITLE = Text("Non-contiguous tensors are copied", "非连续张量被转为连续")
_SUMMARY = Text(
    "{count} copies make tensors contiguous and take {share:.1%} of the time of a step; {repeated} "
    "of them materialize an expanded tensor, as the strides of their inputs show.",
    "{count} 次拷贝把张量转为连续，占单步时间的 {share:.1%}；其中 {repeated} 次把 expand "
    "的张量展开写出，其输入的步长可以证明。",
)
_ORDER = Text(
    "At the places below, remove the preceding permute, transpose or slice, or create the tensor in "
    "the order in which it is used; if it does not change, once outside the loop.",
    "在下列位置去掉之前的 permute、transpose 或切片，或者一开始就按使用的次序生成张量；"
    "不变的张量只在循环外转换一次。",
)
_SHUFFLE = Text(
    "For channel shuffles, or splits that are joined again, `torchferry.perf.affinity` has variants "
    "without such copies (ChannelShuffle).",
    "若是通道混洗或切分后再拼接，`torchferry.perf.affinity` 有不产生此类拷贝的写法（ChannelShuffle）。",
)
_REPEATED = Text(
    "Keep expanded tensors expanded: operators broadcast them; remove .contiguous(), .repeat() and "
    ".reshape() after .expand().",
    "保留 expand 的结果：算子会自行广播；去掉 .expand() 之后的 .contiguous()、.repeat() 和 .reshape()。",
)
_STRIDES = Text("{shape} {dtype}, strides ({strides})", "{shape} {dtype}，步长 ({strides})")
_EXPANDED = Text(
    "{shape} {dtype}, strides ({strides}), expanded", "{shape} {dtype}，步长 ({strides})，由 expand 得到"
)
_BASIS = Text(
    "the time of the copies; operators that read the tensors may take longer without them",
    "拷贝所用的时间；去掉后，读取这些张量的算子可能变慢",
)


def lacks(run: Run) -> Text | None:
    """A trace with strides must be there."""
    return needs_trace(run) or (None if run.trace and run.trace.has_strides else NO_STRIDES)


def contiguous_copies(trace: Trace) -> tuple[Ints, Ints]:
    """Rows of aten::copy_ that put elements into order, and the rows that are there for them."""
    rows = copies(trace, Copied.ORDER, Copied.REPEATED)
    above = callers(trace, rows)
    kept = ~moves_between_devices(trace, above) & ~is_part_of_operator(trace, above)
    above, first = np.unique(above[kept], return_index=True)  # one may make two copies
    return rows[kept][first], above


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the strides of both sides of every copy."""
    rows, above = contiguous_copies(trace)
    time = whole_time(trace, above)
    share = trace.share(int(time.sum()))
    if share < LEAST_SHARE:
        return
    numbers = trace.host.signature[rows]
    kinds = {number: copied(trace.signature(number)) for number in np.unique(numbers).tolist()}
    repeated = sum(1 for number in numbers.tolist() if kinds[number] is Copied.REPEATED)
    summary = _SUMMARY.format(count=len(rows), share=share, repeated=repeated)
    remedies = [_ORDER, _SHUFFLE] if repeated < len(rows) else []
    remedies += [_REPEATED] if repeated else []
    sources = {number: _source(trace, number, kind) for number, kind in kinds.items()}
    evidence = added_up(
        trace,
        names_of(trace, trace.host.name[above]),
        trace.places(above),
        time,
        trace.host.start[above],
        [sources[number] for number in numbers.tolist()],
    )
    yield Diagnosis(ID, _TITLE, summary, share, tuple(remedies), evidence, gain=share, gain_basis=_BASIS)


def _source(trace: Trace, number: int, kind: Copied) -> Text:
    source = tensor(trace.signature(number), 1)
    assert source is not None and source.strides is not None
    shape = "×".join(map(str, source.dims))
    strides = ", ".join(map(str, source.strides))
    said = _EXPANDED if kind is Copied.REPEATED else _STRIDES
    return said.format(shape=shape, dtype=source.dtype, strides=strides)


DETECTOR = trace_detector(ID, detect, lacks)
