"""The tables of an analysis: operators by name, shapes and types; the device's work by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torchferry.perf.detect.groups import compute_time
from torchferry.perf.model import KernelRow, OperatorRow
from torchferry.perf.roofline.judging import peaks_of, reached
from torchferry.perf.roofline.work import work_of
from torchferry.perf.signatures import dtypes_text, shapes_text
from torchferry.traces.columns import EventKind, Interned, Ints

if TYPE_CHECKING:
    from torchferry.traces.model import Trace

MOST_ROWS = 2000  # of a table; a program with more has shapes that change from step to step


def operator_rows(trace: Trace, device_name: str = "") -> tuple[list[OperatorRow], int]:
    """Those of the window, the greatest first; and how many were left out."""
    host = trace.host
    rows = np.flatnonzero((host.kind == EventKind.OPERATOR) & trace.in_window(host))
    signatures, examples = _alike(trace)
    alike = signatures[host.signature[rows]]  # the last is that of -1: not recorded
    keys, first, group = np.unique(
        host.name[rows] * len(signatures) + alike, return_index=True, return_inverse=True
    )
    calls = np.bincount(group, minlength=len(keys))
    own = np.bincount(group, weights=trace.own_time[rows], minlength=len(keys))
    device = (
        own
        if trace.is_host_only
        else np.bincount(group, weights=trace.device_time[rows], minlength=len(keys))
    )
    order = np.lexsort((-own, -device))
    kept = order[:MOST_ROWS]
    names, numbers = host.name[rows[first[kept]]].tolist(), alike[first[kept]].tolist()
    found = [
        OperatorRow(
            trace.names[name],
            shapes_text(trace.signature(examples[number])),
            dtypes_text(trace.signature(examples[number])),
            int(calls[at]),
            float(own[at]) / 1e9,
            float(device[at]) / 1e9,
            place,
            roofline,
        )
        for at, name, number, place, roofline in zip(
            kept.tolist(),
            names,
            numbers,
            trace.places(rows[first[kept]]),
            _rooflines(trace, device_name, rows, first, group)[kept].tolist(),
            strict=True,
        )
    ]
    return found, len(order) - len(kept)


def _rooflines(trace: Trace, device_name: str, rows: Ints, first: Ints, group: Ints) -> Any:
    """For each group of rows what it reaches of what the device can do; None: not known."""
    found = np.full(len(first), None, object)
    peaks = None if trace.is_host_only else peaks_of(device_name or trace.device_name)
    if peaks is None:
        return found
    time = compute_time(trace)[rows]
    seconds = np.bincount(group, weights=time, minlength=len(first)) / 1e9
    calls = np.bincount(group, weights=time > 0, minlength=len(first))
    for at in np.flatnonzero(calls).tolist():
        row = int(rows[first[at]])
        work = work_of(
            trace.names[int(trace.host.name[row])], trace.signature(int(trace.host.signature[row]))
        )
        found[at] = reached(work, float(seconds[at] / calls[at]), peaks)
    return found


def _alike(trace: Trace) -> tuple[Ints, list[int]]:
    """For each signature the number of its shapes and types alone; and for each of these numbers one signature."""
    known = Interned()
    numbers = [known[dims, types] for dims, types, *_ in trace.raw_signatures]
    examples = [-1] * (len(known) + 1)
    for signature, number in enumerate(numbers):
        examples[number] = signature
    return np.array([*numbers, len(known)], np.int64), examples


def kernel_rows(trace: Trace) -> tuple[list[KernelRow], int]:
    """What the device did in the window, the greatest first; and how many names were left out."""
    kept = trace.in_window(trace.device)
    device, owner = trace.device.take(kept), trace.owner[kept]
    if not len(device):
        return [], 0
    keys, first, group = np.unique(
        device.name * len(EventKind) + device.kind, return_index=True, return_inverse=True
    )
    calls = np.bincount(group, minlength=len(keys))
    time = np.bincount(group, weights=device.duration, minlength=len(keys))
    order = np.argsort(-time, kind="stable")
    launchers = _launchers(trace, group, device.duration, owner)
    found = [
        KernelRow(
            trace.names[int(device.name[first[at]])],
            EventKind(int(device.kind[first[at]])).name.lower(),
            int(calls[at]),
            float(time[at]) / 1e9,
            launchers.get(at, ""),
        )
        for at in order[:MOST_ROWS].tolist()
    ]
    return found, max(len(order) - MOST_ROWS, 0)


def _launchers(trace: Trace, group: Ints, duration: Ints, owner: Ints) -> dict[int, str]:
    """For each group the operator that launched most of its time."""
    owned = owner >= 0
    owned[owned] = trace.host.kind[owner[owned]] == EventKind.OPERATOR
    if not owned.any():
        return {}
    count = len(trace.names)
    pairs, place = np.unique(group[owned] * count + trace.host.name[owner[owned]], return_inverse=True)
    time = np.bincount(place, weights=duration[owned], minlength=len(pairs))
    # later ones win: in the order of their time, each group ends with its greatest
    return {int(pairs[at] // count): trace.names[int(pairs[at] % count)] for at in np.argsort(time).tolist()}
