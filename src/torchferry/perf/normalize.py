"""Rewrites a trace so that every viewer shows it as it was: numbers as times, from 0 on, in one object, with a whole end.

Vendors write times since 1970 as texts. As the floats that viewers hold them in, they lose what is below a quarter of a
microsecond, and events that lay in each other no longer do. The file is read twice, piece by piece: its size does not
matter.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, NamedTuple, cast

import msgspec

from torchferry.errors import InputError, no_place, not_writable
from torchferry.files.aside import whole_file
from torchferry.text import Text
from torchferry.traces.chunks import Chunks, single_events

Fields = dict[str, msgspec.Raw]
Progress = Callable[[int], None]

_EVENTS = msgspec.json.Decoder(list[Fields])
_NOTHING = msgspec.Raw(b"")
_METADATA = b'"M"'
_COMPLETE = b'"X"'
_BASE = "baseTimeNanoseconds"


class Normalized(NamedTuple):
    """What normalizing a trace did."""

    events: int
    dropped: int  # events without a usable time, or that no JSON reader accepts
    origin: int  # nanoseconds by the old clock where the new one begins
    is_repaired: bool  # the file ended in the middle


def normalize(source: Path, target: Path, on_progress: Progress | None = None) -> Normalized:
    """Write `target`, whole or not at all; compressed if its name ends in .gz. It may be `source` itself."""
    if not target.parent.is_dir() or (target.exists() and not target.is_file()):
        raise no_place(target)
    origin = _origin(source)
    try:
        with whole_file(target) as whole, _packed(whole, compressed=target.suffix == ".gz") as file:
            return _rewrite(source, file, origin, on_progress)
    except OSError as error:
        raise not_writable(
            repr(str(target)), error, Text("choose another file with -o", "请用 -o 指定其他文件")
        ) from None


@contextmanager
def _packed(file: IO[bytes], *, compressed: bool) -> Iterator[IO[bytes]]:
    if not compressed:
        yield file
        return
    # without a name and a date inside: the same trace gives the same bytes
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        yield cast("IO[bytes]", packed)


def _origin(source: Path) -> int:
    """The whole microsecond in which the first event begins, as nanoseconds."""
    first: int | None = None
    for events in _pieces(Chunks(source), []):
        starts = (_start(event) for event in events if _phase(event) != _METADATA)
        earliest = min((start for start in starts if start is not None), default=None)
        if earliest is not None:
            first = earliest if first is None else min(first, earliest)
    if first is None:
        raise InputError(
            Text(
                f"{str(source)!r} holds no event with a time: not a profiler trace, or an empty one",
                f"{str(source)!r} 没有带时间的事件：不是 profiler 的 trace，或者为空",
            )
        )
    return first - first % 1000


def _rewrite(source: Path, file: IO[bytes], origin: int, on_progress: Progress | None) -> Normalized:
    chunks = Chunks(source)
    damaged: list[bytes] = []
    count = dropped = 0
    file.write(b'{"traceEvents": [\n')
    for events in _pieces(chunks, damaged):
        kept = [changed for event in events if (changed := _rebased(event, origin)) is not None]
        dropped += len(events) - len(kept)
        if not kept:
            continue
        # viewers take of two that begin together the first for the outer one
        kept.sort(key=lambda each: (each[0], -each[1]))
        file.write(b",\n" if count else b"")
        file.write(b",\n".join(msgspec.json.encode(event) for _, _, event in kept))
        count += len(kept)
        if on_progress is not None:
            on_progress(count)
    about = dict(chunks.about)
    if isinstance(about.get(_BASE), int):
        about[_BASE] += origin
    about.setdefault("displayTimeUnit", "ms")
    rest = json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")
    file.write(b"\n], " + rest[1:] + b"\n")
    return Normalized(count, dropped + len(damaged), origin, chunks.is_cut_short)


def _pieces(chunks: Chunks, damaged: list[bytes]) -> Iterator[list[Fields]]:
    """Lists of events; those that can't be read are put aside."""
    for chunk in chunks:
        text = chunk.decode("utf-8", "replace").encode()
        try:
            yield _EVENTS.decode(b"[" + text + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield list(_one_by_one(text, damaged))


def _one_by_one(text: bytes, damaged: list[bytes]) -> Iterator[Fields]:
    for piece in single_events(text):
        try:
            yield from _EVENTS.decode(b"[" + piece + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError):
            try:
                # NaN becomes null; control characters and halves of characters are written as JSON wants them
                read = json.loads(piece, strict=False, parse_constant=lambda _: None)
                if not isinstance(read, dict):
                    raise ValueError("no event")
                repaired = json.dumps(read, ensure_ascii=False).encode("utf-8", "replace")
                yield _EVENTS.decode(b"[" + repaired + b"]")[0]
            except (ValueError, msgspec.DecodeError):
                damaged.append(piece)


def _rebased(event: Fields, origin: int) -> tuple[int, int, Fields] | None:
    """When it begins, how long it takes, and the event by the new clock; None if its time can't be used."""
    for key in ("pid", "tid"):  # profilers write 25738 and "25738" for one thread, viewers make two of it
        given = bytes(event.get(key, _NOTHING))
        text = given[1:-1]
        if given[:1] == b'"' and text.isdigit() and len(text) < 16 and (text == b"0" or text[:1] != b"0"):
            event[key] = msgspec.Raw(text)
    phase = _phase(event)
    if phase == _METADATA:
        if "ts" in event:
            event["ts"] = msgspec.Raw(b"0")
        return -1, 0, event
    start = _start(event)
    if start is None:
        return None
    length = _length(event, start) if phase == _COMPLETE else 0
    if length is None or length < 0:
        return None
    if phase == _COMPLETE:
        event["dur"] = _microseconds(length)
    event["ts"] = _microseconds(start - origin)
    return start, length, event


def _phase(event: Fields) -> bytes:
    return bytes(event.get("ph", _NOTHING))


def _start(event: Fields) -> int | None:
    time = _exact(event.get("ts", _NOTHING))
    return None if time is None else _floor(time)


def _length(event: Fields, start: int) -> int | None:
    """From the rounded beginning to the rounded end: what lay in another still does."""
    length = event.get("dur", _NOTHING)
    if bytes(length) in (b"", b"null"):
        return 0
    begin, took = _exact(event["ts"]), _exact(length)
    return None if begin is None or took is None else _floor(begin + took) - start


def _exact(raw: msgspec.Raw) -> Decimal | None:
    """The microseconds that a field says; None: it is no time."""
    text = bytes(raw).strip(b'" \t').decode("ascii", "replace")
    try:
        time = Decimal(text)
    except ArithmeticError:
        return None
    return time if time.is_finite() and abs(time) < 10**18 else None


def _floor(microseconds: Decimal) -> int:
    return int((microseconds * 1000).__floor__())


def _microseconds(nanoseconds: int) -> msgspec.Raw:
    return msgspec.Raw(b"%d.%03d" % divmod(nanoseconds, 1000))
