"""What a copy of a tensor is for, proved by the strides and the types of its two sides."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from torchferry.perf.detect.containment import operators_in_window
from torchferry.perf.roofline.work import tensor
from torchferry.traces.columns import Flags, Ints

if TYPE_CHECKING:
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
    """Of aten::copy_(target, source)."""
    target, source = tensor(signature, 0), tensor(signature, 1)
    if target is None or source is None:
        return Copied.UNKNOWN
    if target.dtype != source.dtype:
        return Copied.TYPE
    if target.strides is None or source.strides is None:
        return Copied.UNKNOWN
    if target.dims != source.dims or target.strides == source.strides:
        return Copied.NOTHING
    if is_expanded(source.dims, source.strides):
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


def is_expanded(dims: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether a dimension repeats the same elements."""
    return any(size > 1 and not stride for size, stride in zip(dims, strides, strict=True))


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
        if _has_elements(signature) and copied(signature) in wanted
    ]
    found: Ints = rows[np.isin(numbers, fitting)]
    return found


def _has_elements(signature: TraceSignature) -> bool:
    """A single one is a number that the host wraps: to call costs then, not to copy."""
    source = tensor(signature, 1)
    return source is not None and source.numel > 1


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
    is_operator = np.array([name.startswith("aten::") for name in trace.names], bool)
    above = trace.parent[callers_of_copies]
    is_bare = np.isin(trace.host.name[callers_of_copies], trace.name_ids(COPY))
    inside: Flags = is_bare & (above >= 0) & is_operator[trace.host.name[above]]
    return inside
