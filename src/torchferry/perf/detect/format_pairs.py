"""A conversion is undone by the next one: a format, a type or an order goes from A to B and back to A."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.conversions import (
    CHANGES,
    COPY,
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
    found_in_trace,
    kernel_evidence,
    needs_work_or_types,
    work_time,
)
from torchferry.perf.detect.model import Detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import KernelSignature, KernelTable
from torchferry.text import Text
from torchferry.traces.columns import INVALID, EventKind, Flags, Ints
from torchferry.traces.model import Trace

ID = "format_pairs"
LEAST_SHARE = 0.01  # of the steps; none of it does anything
_SHOWN = 4  # rows of evidence of each way to find them

_TITLE = Text("Conversions cancel each other", "转换相互抵消")
_SUMMARY = Text(
    "{count} conversions are reversed by the next one (A → B → A); the pairs take {share:.1%} of the "
    "time of a step.",
    "{count} 次转换随即被下一次还原（A → B → A）；这些成对的转换占单步时间的 {share:.1%}。",
)
_FORMATS = Text(
    "Keep the tensor in the format of the operators on both sides: set the format of weights when "
    "they are created, and move operators that force another format (index_select, views, gathers) "
    "out from between them.",
    "让张量保持两侧算子的格式：在初始化时设定权重格式，把强制其他格式的算子（index_select、视图、"
    "gather）移出两者之间。",
)
_TYPES = Text(
    "Do not cast back and forth: remove .float() and .half() between operators with the same dtype, "
    "and extend the autocast region over both.",
    "不要来回转换：去掉类型相同的算子之间的 .float() 与 .half()，让 autocast 区域覆盖两者。",
)
_BASIS = Text("the time of both conversions of each pair", "每对两次转换的时间之和")
# Operators that give memory or another view of it, and those that only call a cast.
_NO_WORK = tuple(
    f"aten::{name}"
    for name in (
        "to", "_to_copy", "empty", "empty_like", "empty_strided", "view", "_unsafe_view", "reshape", "as_strided",
        "transpose", "t", "permute", "expand", "squeeze", "unsqueeze", "slice", "select", "detach", "alias", "resize_",
        "result_type", "flatten", "contiguous", "clone",
    )
)  # fmt: skip


def detect(run: Run) -> Iterator[Diagnosis]:
    """By formats where a table has them, else by which operators the conversions belong to, and by types."""
    if run.kernels is not None:
        found = [_in_table(run.kernels)]
    elif run.trace is not None:
        found = [_on_device(run.trace), _casts(run.trace)]
    share = sum(each.share for each in found)
    if share < LEAST_SHARE:
        return
    summary = _SUMMARY.format(count=sum(each.calls for each in found) // 2, share=share)
    evidence = tuple(each for part in found for each in part.evidence)
    yield Diagnosis(ID, _TITLE, summary, share, (_FORMATS, _TYPES), evidence, gain=share, gain_basis=_BASIS)


def _in_table(table: KernelTable) -> FoundKernels:
    """Neighbours on a stream, where the second one's output is the first one's input."""
    changes = table_changes(table)
    order = np.lexsort((table.start, table.stream))
    order = order[table.start[order] != INVALID]
    first, second = order[:-1], order[1:]
    near = (changes[first] >= 0) & (changes[first] == changes[second])
    near &= table.stream[first] == table.stream[second]
    undone: Flags = near.copy()
    numbers = zip(table.signature[first[near]].tolist(), table.signature[second[near]].tolist(), strict=True)
    undone[near] = [_undoes(table.signatures[one], table.signatures[other]) for one, other in numbers]
    pairs = _not_overlapping(undone)
    rows = np.zeros(len(table), bool)
    rows[first[pairs]] = rows[second[pairs]] = True
    share = table.share(float(table.duration[rows].sum()) / 1e9)
    evidence = tuple(kernel_evidence(table, group) for group in table.groups_of(rows)[:_SHOWN])
    return FoundKernels(int(rows.sum()), share, evidence)


def _undoes(one: KernelSignature, other: KernelSignature) -> bool:
    there = (one.input_shapes, one.input_dtypes, one.input_formats)
    between = (one.output_shapes, one.output_dtypes, one.output_formats)
    back = (other.output_shapes, other.output_dtypes, other.output_formats)
    return bool(one.input_shapes) and there == back and there != between == (
        other.input_shapes, other.input_dtypes, other.input_formats
    )  # fmt: skip


def _not_overlapping(undone: Flags) -> Ints:
    """Of A → B → A → B only the first three are a pair."""
    found: list[int] = []
    for row in np.flatnonzero(undone).tolist():
        if not found or found[-1] < row - 1:
            found.append(row)
    return np.array(found, np.int64)


def _on_device(trace: Trace) -> FoundKernels:
    """A trace tells no formats. But the last conversion of one operator is of its output, the first of the next operator
    of its input: where they follow each other on a stream, the second undoes the first."""
    work = trace.device
    rows = np.flatnonzero(work.kind == EventKind.COMPUTE)
    if len(rows) < 2:
        return FoundKernels(0, 0.0, ())
    rows = rows[np.lexsort((work.start[rows], work.thread[rows]))]
    owner, thread, change = trace.owner[rows], work.thread[rows], device_changes(trace)[rows]
    is_border = (owner[1:] != owner[:-1]) | (thread[1:] != thread[:-1])
    section = np.concatenate([[0], np.cumsum(is_border)])  # kernels of one operator in a row
    computes = np.bincount(section, weights=change < 0) > 0
    last = np.flatnonzero(is_border)
    first = last + 1
    paired = (change[last] >= 0) & (change[last] == change[first]) & (thread[last] == thread[first])
    paired &= (owner[last] >= 0) & (owner[first] >= 0) & computes[section[last]] & computes[section[first]]
    paired &= change[last] != CHANGES.index(Change.TYPE)  # which type a cast gives only its operator tells
    return found_in_trace(trace, np.unique(np.concatenate([rows[last[paired]], rows[first[paired]]])))


def _casts(trace: Trace) -> FoundKernels:
    """Casts of equal shapes that follow each other, with no operator between them that computes anything."""
    host = trace.host
    casts = np.zeros(len(host), bool)
    casts[copies(trace, Copied.TYPE)] = True
    computes = ~np.isin(host.name, trace.name_ids(*_NO_WORK))
    working = (host.kind == EventKind.OPERATOR) & (work_time(trace) > 0) & computes
    rows = np.flatnonzero(working | casts)
    first, second = rows[:-1], rows[1:]
    near = casts[first] & casts[second] & (host.thread[first] == host.thread[second])
    undone: Flags = near.copy()
    casting, back = (map(trace.signature, host.signature[rows[near]].tolist()) for rows in (first, second))
    undone[near] = [
        one.dims[:2] == other.dims[:2] and one.types[:2] == other.types[1::-1]
        for one, other in zip(casting, back, strict=True)
    ]
    pairs = _not_overlapping(undone)
    both = np.sort(np.concatenate([first[pairs], second[pairs]])).astype(np.int64)
    above = callers(trace, both)
    inputs = all_described(trace, host.signature[both])
    time = work_time(trace)[both]
    evidence = added_up(
        trace, [COPY] * len(both), trace.places(above), time, host.start[both], inputs, _SHOWN
    )
    return FoundKernels(len(both), trace.share(int(time.sum())), evidence)


DETECTOR = Detector(ID, needs_work_or_types, detect)
