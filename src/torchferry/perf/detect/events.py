"""Events of a trace that detectors ask for: which lie in which, how often in a step, and what Python is at, by the names of its functions."""

from __future__ import annotations

import re

import numpy as np

from torchferry.traces.columns import Columns, EventKind, Flags, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.model import Trace
from torchferry.traces.names import operator_of


def lies_in(thread: Ints, time: Ints, around: Columns) -> Flags:
    """Which moments of threads lie in one of some events of the same thread."""
    found = np.zeros(len(time), bool)
    for number in np.unique(around.thread).tolist():
        asked = thread == number
        own = around.thread == number
        found[asked] = Intervals.union(around.start[own], around.end[own]).holds(time[asked])
    return found


def marks(trace: Trace, prefix: str) -> Columns:
    """The annotations of the window whose names begin so."""
    return trace.of_window(trace.host.take(trace.host_rows(prefix=prefix)).where(EventKind.ANNOTATION))


def operators_in_window(trace: Trace) -> Ints:
    """The rows of `host` that are operators and begin in the window."""
    return np.flatnonzero((trace.host.kind == EventKind.OPERATOR) & trace.in_window(trace.host))


def frames_with(trace: Trace, *parts: str) -> Columns:
    """Python's frames whose names hold one of some texts."""
    fits = trace.names_that(lambda name: any(part in name for part in parts))
    return trace.python.take(fits[trace.python.name])


def events_like(trace: Trace, events: Columns, pattern: re.Pattern[str]) -> Columns:
    """Those of some events that begin in the window, and in whose names a pattern is found."""
    return trace.of_window(events.take(np.isin(events.name, trace.names_like(pattern))))


def per_step(trace: Trace, count: float) -> float:
    """How many in a step; all of them, where steps are not told apart."""
    return count / max(len(trace.steps), 1)


def is_on_host(trace: Trace, device: str) -> bool:
    """Whether the host itself is the device: a run on the CPU, not one whose device could not be traced."""
    return trace.is_host_only and device in ("", "cpu")


def outermost_operators(trace: Trace, rows: Ints) -> Ints:
    """The first operator in the program's own terms: aten::item of aten::_local_scalar_dense. -1 stays."""
    operators = trace.names_that(operator_of)
    outer: Ints = rows.copy()
    above = np.where(rows >= 0, trace.parent[rows], -1)
    while (above >= 0).any():
        outer = np.where((above >= 0) & operators[trace.host.name[above]], above, outer)
        above = np.where(above >= 0, trace.parent[above], -1)
    return outer


SAVING = re.compile(
    r"torch/serialization\.py\(\d+\): save$|safetensors/\w+\.py\(\d+\): save\w*$|"
    r"distributed/checkpoint/\w+\.py\(\d+\): (?:save|async_save)$|"
    r"(?:^|\): |[./#])save_?(?:checkpoint|ckpt|model|weights|state)\w*$",
    re.IGNORECASE,
)
COLLECTING = re.compile(
    r"^<built-in (?:function|method) collect(?: of module gc.*)?>$|(?:^|[./])gc\.collect\b"
)
SLEEPING = re.compile(r"^<built-in (?:function|method) sleep(?: of .*)?>$")
# Libraries that read, decode and change samples; their compiled functions bear the library's name, too.
PREPARING = re.compile(
    r"(?:^|/)(?:numpy|PIL|cv2|skimage|scipy|pandas|albumentations|torchvision/(?:transforms|io)|torchaudio|librosa|soundfile)/|"
    r"^<built-in .*\b(?:numpy|mtrand|ImagingCore|cv2|pandas)\b|^<built-in function (?:imread|imdecode|resize|cvtColor)>$"
)


def frames_like(trace: Trace, pattern: re.Pattern[str]) -> Columns:
    """Python's frames in the window whose names fit; of those that lie in each other, the outermost."""
    return outermost(events_like(trace, trace.python, pattern))


def outermost(events: Columns) -> Columns:
    """Those that lie in no earlier one of their thread."""
    events = events.in_order()
    inner = np.zeros(len(events), bool)
    for number in np.unique(events.thread).tolist():
        own = np.flatnonzero(events.thread == number)
        ends = np.maximum.accumulate(events.end[own])
        inner[own[1:]] = events.start[own[1:]] < ends[:-1]
    return events.take(~inner)


def moments_like(trace: Trace, pattern: re.Pattern[str]) -> Intervals:
    """When such functions were at work."""
    return trace.moments(frames_like(trace, pattern))
