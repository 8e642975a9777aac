"""What Python is at, by the names of its functions: preparing data, writing checkpoints, collecting garbage, sleeping."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from torchferry.traces.columns import Columns, Flags
from torchferry.traces.intervals import Intervals

if TYPE_CHECKING:
    from torchferry.traces.model import Trace

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
    numbers = [number for number, name in enumerate(trace.names) if pattern.search(name)]
    frames = trace.python.take(np.isin(trace.python.name, numbers))
    frames = frames.take(trace.in_window(frames)).in_order()
    return frames.take(~inner(frames))


def inner(frames: Columns) -> Flags:
    """Which lie in an earlier one; the frames are in order."""
    found = np.zeros(len(frames), bool)
    for number in np.unique(frames.thread).tolist():
        own = np.flatnonzero(frames.thread == number)
        ends = np.maximum.accumulate(frames.end[own])
        found[own[1:]] = frames.start[own[1:]] < ends[:-1]
    return found


def moments_like(trace: Trace, pattern: re.Pattern[str]) -> Intervals:
    """When such functions were at work."""
    return trace.moments(frames_like(trace, pattern))
