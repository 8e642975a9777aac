"""Whether what was given belongs to one run: traces of different runs must not be added up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from torchferry.errors import InputError
from torchferry.perf.run import Run
from torchferry.perf.trace.model import Trace
from torchferry.perf.trace.times import INVALID

CHOOSE = "give the files of one run, or compare two runs with --baseline A B"
_SINCE_1970 = 10**17  # nanoseconds; clocks below it began with the machine, and can't be compared with others
_MOST_APART = (
    60 * 10**9
)  # nanoseconds that the clocks of two machines, or the starts of two processes, may differ


class _Seen(NamedTuple):
    """What tells one trace from another."""

    source: str
    device: str
    rank: int | None
    process: str
    id: str
    span: tuple[int, int]


def check_one_run(runs: Sequence[Run]) -> None:
    """InputError if there are two that can't be processes of the same run."""
    traced = [(run.profile, _seen(run, run.trace)) for run in runs if run.trace is not None]
    for (profile, first), (other_profile, second) in combinations(traced, 2):
        if profile and profile is other_profile:  # the record of the run says that they belong together
            continue
        if problem := _apart(first, second):
            raise InputError(f"{first.source!r} and {second.source!r} {problem}; {CHOOSE}")


def check_joined(run: Run) -> None:
    """InputError if the tables of a run are not of the time, or not of the device, of its trace."""
    trace = run.trace
    if trace is None:
        return
    span = _span(trace)
    for table, first, last in _table_spans(run):
        if min(first, span[0]) > _SINCE_1970 and (first > span[1] or last < span[0]):
            raise InputError(
                f"{trace.path!r} and {table!r} are of different runs: {_seconds_between(span, (first, last))}; {CHOOSE}"
            )
    if run.memory is not None and trace.device_type != "cpu":
        types = {device.partition(":")[0] for device in run.memory.curves} - {"", "cpu"}
        if types and trace.device_type not in types:
            raise InputError(
                f"{trace.path!r} is of the device {trace.device_type!r}, {run.memory.paths[0]!r} of "
                f"{', '.join(sorted(types))!r}: they are of different runs; {CHOOSE}"
            )


def _seen(run: Run, trace: Trace) -> _Seen:
    rank = run.rank_facts.get("rank", trace.rank)
    return _Seen(
        trace.path,
        run.device,
        rank if isinstance(rank, int) else None,
        _process(trace),
        str(trace.about.get("trace_id", "")),
        _span(trace),
    )


def _apart(first: _Seen, second: _Seen) -> str:
    """What speaks against their being of one run; "": nothing."""
    if first.device != second.device:
        return f"are of different devices ({first.device}, {second.device})"
    has_ranks = first.rank is not None and second.rank is not None
    if has_ranks and first.rank == second.rank:
        return f"are both of rank {first.rank}: two runs, or two windows of one"
    if not has_ranks and first.process == second.process:
        if first.id and first.id == second.id:
            return "are the same trace"
        return f"are both of process {first.process}: two runs, or two windows of one"
    gap = max(first.span[0], second.span[0]) - min(first.span[1], second.span[1])
    if min(first.span[0], second.span[0]) > _SINCE_1970 and gap > _MOST_APART:
        return f"are of different runs: {_seconds_between(first.span, second.span)}"
    return ""


def _seconds_between(first: tuple[int, int], second: tuple[int, int]) -> str:
    gap = max(first[0], second[0]) - min(first[1], second[1])
    return f"{gap / 1e9:,.1f} seconds lie between them"


def _span(trace: Trace) -> tuple[int, int]:
    """By the clock of the world, if the file tells."""
    base = trace.about.get("baseTimeNanoseconds")
    origin = trace.origin + (base if isinstance(base, int) else 0)
    return origin + trace.span[0], origin + trace.span[1]


def _process(trace: Trace) -> str:
    """Of most operators."""
    if not len(trace.host):
        return ""
    return trace.threads[int(np.bincount(trace.host.thread).argmax())].process


def _table_spans(run: Run) -> list[tuple[str, int, int]]:
    spans = []
    if run.kernels is not None and any(run.kernels.span):
        spans.append((run.kernels.path, *run.kernels.span))
    if run.memory is not None:
        known = [run.memory.start, run.memory.end, *(curve.start for curve in run.memory.curves.values())]
        times = np.concatenate(known)
        times = times[times != INVALID]
        if len(times):
            spans.append((run.memory.paths[0], int(times.min()), int(times.max())))
    return spans
