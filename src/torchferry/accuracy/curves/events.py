"""Event files of TensorBoard, written by hand: records with their checksums, and the few fields of Event that scalars need.

TensorBoard's own writer comes with TensorBoard, which a cluster for training rarely has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from torchferry.accuracy.curves.runs import Array, Series, StepFigures, WatchedRun
from torchferry.accuracy.curves.trends import Progress
from torchferry.accuracy.watch import rows
from torchferry.errors import OutputError, not_writable
from torchferry.files.aside import write_whole
from torchferry.report.safe import one_line
from torchferry.text import Text

_VERSION = b"brain.Event:2"
_VALUES_OF_AN_EVENT = 200
_STEPS_AT_ONCE = 256
_MATRIX = 1 << 25  # bytes of events whose checksums are computed together
Figure = Callable[[StepFigures], Array]
Curve = tuple[int, bytes, Figure]  # number of the series, the beginning of its value, the figure
_FIGURES: dict[str, dict[str, Figure]] = {
    "value": {"": lambda figures: figures.size},
    "norm": {"norm": lambda figures: figures.size},
    "ratio": {"ratio": lambda figures: figures.size},
    "rms": {"rms": lambda figures: figures.size},
    "all": {
        "rms": lambda figures: figures.size,
        "mean": lambda figures: figures.mean,
        "min": lambda figures: figures.minimum,
        "max": lambda figures: figures.maximum,
        "zeros": lambda figures: figures.zeros / np.where(figures.count > 0, figures.count, np.nan),
    },
}
# What TensorBoard groups the curves of a row by, and which figures it gets
_GROUPS = {
    rows.LOSS: ("loss", "value"),
    rows.GRADIENT_NORM: ("gradient_norm", "value"),
    rows.GROUP_NORM: ("gradient_norm_of_groups", "value"),
    rows.LEARNING_RATE: ("learning_rate", "value"),
    rows.SCALE: ("scale", "value"),
    rows.SECONDS: ("seconds_per_step", "value"),
    rows.MODULE: ("activations", "all"),
    rows.OUTPUT_GRADIENT: ("activation_gradients", "rms"),
    rows.GRADIENT: ("gradients", "norm"),
    rows.PARAMETERS: ("parameters", "norm"),
    rows.UPDATE: ("update_ratios", "ratio"),
    rows.BUFFERS: ("buffers", "rms"),
}
_NOT_FINITE = "not_finite"


def export(run: WatchedRun, folder: Path, progress: Progress = lambda done, count: None) -> int:
    """Write the curves of a run into a new folder; how many these are."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            Text(
                f"{folder}: already exists and is not empty; choose another folder",
                f"{folder}：已存在且非空；请另选文件夹",
            )
        )
    tags = _tags(run.series)
    path = folder / f"events.out.tfevents.{max(0, int(run.times[0]))}.torchferry"
    try:
        write_whole(path, _framed(_events(run, tags, progress)))
    except OSError as error:
        raise not_writable(path, error) from None
    return len(tags)


def _tags(series: Sequence[Series]) -> list[Curve]:
    """All curves."""
    models = {each.model for each in series if each.is_of_module}
    found: list[Curve] = []
    for number, each in enumerate(series):
        group, kind = _GROUPS.get(each.row, ("", ""))
        figures = {**_FIGURES[kind]} if group else {}
        names = [one_line(name) for name in _path(each, len(models) > 1)]
        if group and each.is_of_module:
            found.append((number, _value("/".join([_NOT_FINITE, group, *names])), _not_finite))
        for name, figure in figures.items():
            found.append((number, _value("/".join(filter(None, [group, *names, name]))), figure))
    return found


def _path(series: Series, has_models: bool) -> list[str]:
    if not series.is_of_module:
        return [".".join(filter(None, (series.model, series.module)))] if series.module else []
    tensor = "" if series.name == "output_0" else series.name
    path = ".".join(filter(None, (series.module or series.model, tensor)))
    return [series.model, path] if has_models and series.model else [path or "unnamed"]


def _not_finite(figures: StepFigures) -> Array:
    """Only where there are any: most curves never have one."""
    found: Array = np.where(figures.not_finite > 0, figures.not_finite, np.nan)
    return found


# Events as protocol buffers: fields of a number and a kind, then the bytes.


def _value(tag: str) -> bytes:
    """A Summary.Value up to the four bytes of its number."""
    name = tag.encode("utf-8", "replace")
    inside = b"\x0a" + _varint(len(name)) + name + b"\x15"
    return b"\x0a" + _varint(len(inside) + 4) + inside


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _event(moment: float, step: int, summary: bytes) -> bytes:
    return (
        b"\x09"
        + struct.pack("<d", moment)
        + b"\x10"
        + _varint(step)
        + b"\x2a"
        + _varint(len(summary))
        + summary
    )


def _events(run: WatchedRun, tags: Sequence[Curve], progress: Progress) -> Iterator[bytes]:
    yield b"\x09" + struct.pack("<d", float(run.times[0])) + b"\x1a" + _varint(len(_VERSION)) + _VERSION
    prefixes = [prefix for _, prefix, _ in tags]
    for start in range(0, len(run.steps), _STEPS_AT_ONCE):
        end = min(start + _STEPS_AT_ONCE, len(run.steps))
        progress(start, len(run.steps))
        columns, is_known = _columns(run.figures(start, end), tags)
        for at in range(start, end):
            known = np.flatnonzero(is_known[at - start]).tolist()
            numbers = columns[at - start].astype("<f4").tobytes()
            values = [prefixes[place] + numbers[4 * place : 4 * place + 4] for place in known]
            for first in range(0, len(values), _VALUES_OF_AN_EVENT):
                some = b"".join(values[first : first + _VALUES_OF_AN_EVENT])
                yield _event(float(run.times[at]), int(run.steps[at]), some)


def _columns(figures: StepFigures, tags: Sequence[Curve]) -> tuple[Array, Array]:
    """A row a step and a column a curve; and which of them are there: also a loss that is NaN."""
    made: dict[Figure, Array] = {}
    for _, _, figure in tags:
        if figure not in made:
            made[figure] = figure(figures)
    columns = np.stack([made[figure][:, number] for number, _, figure in tags], axis=1)
    numbers = [number for number, _, _ in tags]
    is_number = np.array([figure is _FIGURES["value"][""] for _, _, figure in tags])
    return columns, ~np.isnan(columns) | (is_number & (figures.not_finite[:, numbers] > 0))


# Records: length, its checksum, the bytes, their checksum.


def _framed(events: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    longest = 0
    for event in events:
        if waiting and (len(waiting) + 1) * max(longest, len(event)) > _MATRIX:
            yield _records(waiting)
            waiting, longest = [], 0
        waiting.append(event)
        longest = max(longest, len(event))
    yield _records(waiting)


def _records(events: Sequence[bytes]) -> bytes:
    lengths = [struct.pack("<Q", len(event)) for event in events]
    sums = zip(lengths, checksums(lengths), events, checksums(events), strict=True)
    return b"".join(
        length + struct.pack("<I", _masked(first)) + event + struct.pack("<I", _masked(second))
        for length, first, event, second in sums
    )


def _masked(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def checksums(texts: Sequence[bytes]) -> list[int]:
    """CRC-32C of each, of at least four bytes: all at once, a byte of each after the other.

    They end together in a matrix: zeros before a text change nothing as long as the register is zero, and a register of
    ones is the same as a zero one with the first four bytes inverted.
    """
    width = max(map(len, texts))
    matrix = np.zeros((width, len(texts)), np.uint8)
    for column, text in enumerate(texts):
        matrix[width - len(text) :, column] = np.frombuffer(text, np.uint8)
        matrix[width - len(text) : width - len(text) + 4, column] ^= 0xFF
    table = _table()
    register = np.zeros(len(texts), np.uint32)
    for row in matrix:
        register = table[(register & 0xFF) ^ row] ^ (register >> np.uint32(8))
    found: list[int] = (register ^ np.uint32(0xFFFFFFFF)).tolist()
    return found


@cache
def _table() -> Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table
