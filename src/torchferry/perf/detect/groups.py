"""The work of operators, added up by name, shapes and types."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from torchferry.perf.model import Evidence
from torchferry.perf.signatures import dtypes_text, shapes_text
from torchferry.traces.columns import EventKind, Ints

if TYPE_CHECKING:
    from torchferry.traces.model import Trace


class CallGroup(NamedTuple):
    """Calls of one operator with one signature."""

    operator: str
    signature: int
    calls: int
    time: int  # nanoseconds of all calls together
    longest: int  # the row of one of them


def work_time(trace: Trace) -> Ints:
    """Of each row of `host`: of the work that it gave to the device itself, or did itself where the host is the device."""
    return trace.own_time if trace.is_host_only else trace.device_time


def compute_time(trace: Trace) -> Ints:
    """Of each row of `host`: of the work that it gave to the device itself, without copies and fills."""
    computing = (trace.owner >= 0) & (trace.device.kind == EventKind.COMPUTE)
    sums = np.bincount(
        trace.owner[computing], weights=trace.device.duration[computing], minlength=len(trace.host)
    )
    return sums.astype(np.int64)


def whole_time(trace: Trace, rows: Ints) -> Ints:
    """The same with everything that rows of `host` called in turn."""
    if trace.is_host_only:
        return trace.host.duration[rows]
    last = end_of_calls(trace, rows)
    before = np.concatenate([[0], np.cumsum(trace.device_time)])
    found: Ints = before[last] - before[rows]
    return found


def end_of_calls(trace: Trace, rows: Ints) -> Ints:
    """The row behind the last one that each row of `host` called: callers come first, what they call follows."""
    host = trace.host
    span = int(host.end.max(initial=0)) + 1
    order = host.thread * span + host.start
    return np.maximum(
        np.searchsorted(order, host.thread[rows] * span + host.end[rows], side="left"), rows + 1
    )


def groups_of(trace: Trace, rows: Ints, time: Ints) -> list[CallGroup]:
    """Rows of `host` with their times, the greatest group first."""
    if not len(rows):
        return []
    name, signature = trace.host.name[rows], trace.host.signature[rows]
    count = len(trace.raw_signatures) + 1
    keys, group = np.unique(name * count + signature + 1, return_inverse=True)
    total = np.bincount(group, weights=time)
    calls = np.bincount(group)
    order = np.argsort(time, kind="stable")
    longest = np.zeros(len(keys), np.int64)
    longest[group[order]] = rows[order]  # the last one stays
    return [
        CallGroup(
            trace.names[int(keys[at] // count)],
            int(keys[at] % count) - 1,
            int(calls[at]),
            int(total[at]),
            int(longest[at]),
        )
        for at in np.argsort(-total, kind="stable").tolist()
    ]


def as_evidence(trace: Trace, group: CallGroup, remark: str = "") -> Evidence:
    """With the place and the time of its longest call."""
    return Evidence(
        group.operator,
        described(trace, group.signature, remark),
        trace.places(np.array([group.longest]))[0],
        group.calls,
        group.time / 1e9,
        trace.share(group.time),
        int(trace.host.start[group.longest]) / 1e9,
    )


def described(trace: Trace, signature: int, remark: str = "") -> str:
    """Shapes, types and a remark."""
    read = trace.signature(signature)
    return "; ".join(filter(None, (shapes_text(read), dtypes_text(read), remark)))
