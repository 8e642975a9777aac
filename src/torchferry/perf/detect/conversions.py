"""What copies and conversions change: a type, a format or an order, by the inputs of operators and the names of kernels."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache

import numpy as np

from torchferry.perf.detect.ai_cpu import on_ai_cpu
from torchferry.perf.detect.events import operators_in_window
from torchferry.perf.roofline import tensor
from torchferry.perf.tables.kernels import KernelTable
from torchferry.text import Text
from torchferry.traces.columns import Flags, Ints
from torchferry.traces.model import Trace, TraceSignature

COPY = "aten::copy_"
# They do nothing else than to copy when they do copy.
_WRAPPERS = (
    "aten::clone",
    "aten::contiguous",
    "aten::reshape",
    "aten::flatten",
    "aten::_reshape_copy",
    "aten::_to_copy",
    "aten::to",
)
_TRANSFERS = ("aten::_to_copy", "aten::to")


class Copied(Enum):
    """What is different between the two sides."""

    NOTHING = "nothing"
    TYPE = "type"
    LAYOUT = "layout"  # channels first and channels last
    ORDER = "order"  # the source's elements lie in another order, or with gaps between them
    REPEATED = "repeated"  # the source is expanded: what it repeats is written out
    TARGET = "target"  # the target lies in another order
    UNKNOWN = "unknown"


def copied(signature: TraceSignature) -> Copied:
    """What a copy changes, by the inputs of aten::copy_(target, source)."""
    target, source = tensor(signature, 0), tensor(signature, 1)
    if target is None or source is None:
        return Copied.UNKNOWN
    if target.dtype != source.dtype:
        return Copied.TYPE
    if target.strides is None or source.strides is None:
        return Copied.UNKNOWN
    if target.dims != source.dims or target.strides == source.strides:
        return Copied.NOTHING
    if any(size > 1 and not stride for size, stride in zip(source.dims, source.strides, strict=True)):
        return Copied.REPEATED
    from_first, to_first = (is_contiguous(target.dims, side.strides or ()) for side in (source, target))
    if from_first and to_first:
        return Copied.NOTHING
    from_last, to_last = (is_channels_last(target.dims, side.strides or ()) for side in (source, target))
    if (from_first and to_last) or (from_last and to_first):
        return Copied.LAYOUT
    return Copied.ORDER if to_first or to_last else Copied.TARGET


def is_contiguous(dims: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the elements lie one behind the other, the last dimension fastest."""
    return _is_dense(dims, strides, range(len(dims) - 1, -1, -1))


def is_channels_last(dims: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether an image, or a film, lies with its channels fastest."""
    if len(dims) not in (4, 5):
        return False
    return _is_dense(dims, strides, [1, *range(len(dims) - 1, 1, -1), 0])


def _is_dense(dims: tuple[int, ...], strides: tuple[int, ...], fastest_first: range | list[int]) -> bool:
    expected = 1
    for index in fastest_first:
        if dims[index] == 1:
            continue  # its stride means nothing
        if strides[index] != expected:
            return False
        expected *= dims[index]
    return True


def copies(trace: Trace, *wanted: Copied) -> Ints:
    """The rows of `host` in the window that copy more than one element for one of some reasons: those of aten::copy_."""
    rows = operators_in_window(trace)
    rows = rows[np.isin(trace.host.name[rows], trace.name_ids(COPY))]
    numbers = trace.host.signature[rows]
    read = {number: trace.signature(number) for number in np.unique(numbers).tolist()}
    fitting = [
        number
        for number, signature in read.items()
        # a single one is a number that the host wraps: to call costs then, not to copy
        if (source := tensor(signature, 1)) and source.numel > 1 and copied(signature) in wanted
    ]
    return rows[np.isin(numbers, fitting)]


def callers(trace: Trace, rows: Ints) -> Ints:
    """For each row of aten::copy_ the outermost operator that is there only for this copy, or the row itself."""
    wraps = np.isin(trace.host.name, trace.name_ids(*_WRAPPERS))
    found: Ints = rows.copy()
    above = trace.parent[rows]
    climbs = (above >= 0) & wraps[above]
    while climbs.any():
        found = np.where(climbs, above, found)
        above = np.where(climbs, trace.parent[above], -1)
        climbs = (above >= 0) & wraps[above]
    return found


def moves_between_devices(trace: Trace, callers_of_copies: Ints) -> Flags:
    """Copies of tensor.to(...) that keep the type bring tensors to another device."""
    return np.isin(trace.host.name[callers_of_copies], trace.name_ids(*_TRANSFERS))


def is_part_of_operator(trace: Trace, callers_of_copies: Ints) -> Flags:
    """Copies that an operator makes for its own ends, as addmm does with the bias: the program cannot leave them out."""
    is_operator = trace.names_that(lambda name: name.startswith("aten::"))
    above = trace.parent[callers_of_copies]
    is_copy = np.isin(trace.host.name[callers_of_copies], trace.name_ids(COPY))
    return is_copy & (above >= 0) & is_operator[trace.host.name[above]]


class Change(Enum):
    """What a kernel that converts changes."""

    FORMAT = "format"
    TYPE = "type"
    ORDER = "order"

    @property
    def label(self) -> Text:
        """The change in words for people."""
        return _LABELS[self]


_LABELS = {
    Change.FORMAT: Text("format", "格式"),
    Change.TYPE: Text("type", "类型"),
    Change.ORDER: Text("order of dimensions", "维度次序"),
}
CHANGES = tuple(Change)
_PATTERNS = (
    (
        Change.FORMAT,
        re.compile(
            r"TransData(?![a-z])(?!\w*MemSet)|format_?cast|nchwToNhwc|nhwcToNchw|convertTensor_kernel|mkldnn_reorder",
            re.IGNORECASE,
        ),
    ),
    (Change.TYPE, re.compile(r"(?:^|_)Cast(?:AiC\w+_Cast)?[\d_]*$")),
    (Change.ORDER, re.compile(r"(?:^|_)Transpose(?:D|AiC\w+)?(?:_Transpose)?[\d_]*$|batched_transpose_|transpose_readWrite")),
)  # fmt: skip


@cache
def change_of(kernel: str) -> Change | None:
    """What a kernel changes, by its name or its type; None: it does something else too."""
    return next((change for change, pattern in _PATTERNS if pattern.search(kernel)), None)


def device_changes(trace: Trace) -> Ints:
    """For each row of `device` the number in CHANGES of what it changes; -1: it is no conversion."""
    by_name = np.full(len(trace.names), -1, np.int64)
    for number in np.unique(trace.device.name).tolist():
        change = change_of(trace.names[number])
        by_name[number] = -1 if change is None else CHANGES.index(change)
    found = by_name[trace.device.name]
    # A kernel that copies has no name of its own for what it changes: its operator's inputs tell.
    launched = np.full(len(trace.host), -1, np.int64)
    launched[copies(trace, Copied.TYPE)] = CHANGES.index(Change.TYPE)
    launched[copies(trace, Copied.LAYOUT)] = CHANGES.index(Change.FORMAT)
    asked = (found < 0) & (trace.owner >= 0)
    found[asked] = launched[trace.owner[asked]]
    found[on_ai_cpu(trace)] = -1  # slow for another reason, which has its own detector
    return found


def table_changes(table: KernelTable) -> Ints:
    """For each row of a table of kernels the number in CHANGES of what it changes; -1: it is no conversion."""
    by_text = np.array(
        [-1 if (change := change_of(text)) is None else CHANGES.index(change) for text in table.texts]
        or [-1],
        np.int64,
    )
    by_type = by_text[table.type]
    return np.where(by_type >= 0, by_type, by_text[table.name])
