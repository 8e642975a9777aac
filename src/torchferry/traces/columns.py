"""Events as columns of numbers, the texts that the numbers stand for, and times as whole nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


class EventKind(IntEnum):
    """What an event tells of."""

    SKIPPED = 0
    OPERATOR = 1  # PyTorch's, as the host calls it; also steps of autograd
    ANNOTATION = 2  # a range that the program or PyTorch names: ProfilerStep#3, Optimizer.step#SGD.step
    PYTHON = 3  # a Python function or a module
    RUNTIME = 4  # the host calls the library of a device, or puts work into a queue for it
    COMPUTE = 5  # from here on: the device works
    COMMUNICATION = 6
    COPY = 7  # between host and device
    FILL = 8
    MOVE = 9  # a copy within the device, or from device to device
    UNSORTED = 10  # of no category, or of one that is not known: its process tells


HOST_KINDS = (EventKind.OPERATOR, EventKind.ANNOTATION)
DEVICE_KINDS = (EventKind.COMPUTE, EventKind.COMMUNICATION, EventKind.COPY, EventKind.FILL, EventKind.MOVE)


class Interned(dict[Any, int]):
    """Numbers things in the order in which they first come."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


@dataclass
class Columns:
    """One row per event. Times are nanoseconds since the trace's beginning."""

    kind: Ints
    name: Ints  # in Trace.names
    thread: Ints  # in Trace.threads
    start: Ints
    duration: Ints
    correlation: Ints  # the same for a call of the runtime and the work on the device; -1: none
    external: Ints  # the number of the operator that something belongs to; -1: none
    signature: Ints  # in Trace.signatures; -1: not recorded
    stack: Ints  # in Trace.stacks; -1: not recorded
    nbytes: Ints  # of copies; -1: not known
    core: Ints  # the part of the device that works, in Trace.cores; -1: not told

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Ints:
        """The times at which events end."""
        return self.start + self.duration

    def take(self, rows: Any) -> Columns:
        """Some rows: numbers or a mask."""
        return Columns(*(getattr(self, field.name)[rows] for field in fields(self)))

    def where(self, *kinds: EventKind) -> Columns:
        """The events of some kinds."""
        return self.take(np.isin(self.kind, kinds))

    @classmethod
    def joined(cls, parts: list[Columns]) -> Columns:
        """The rows of several columns, one after the other."""
        if not parts:
            return cls(*(np.empty(0, np.int64) for _ in fields(cls)))
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def in_order(self) -> Columns:
        """The rows by thread, and there from outside in: callers before what they call."""
        return self.take(
            np.lexsort((self.kind != EventKind.ANNOTATION, -self.duration, self.start, self.thread))
        )


INVALID = np.iinfo(np.int64).min
LARGEST_EXACT = 9e12  # microseconds whose thousandths a float still holds
_LONGEST = 2**62  # nanoseconds
_MOST_DIGITS = 20  # with the point: what a 64-bit number of nanoseconds holds


def nanoseconds(times: Sequence[Any]) -> Ints:
    """Times of microseconds as nanoseconds; INVALID where there is no time."""
    try:
        numbers = np.array(times)
    except (ValueError, OverflowError):
        numbers = np.empty(0, object)
    if numbers.dtype.kind in "iu" and numbers.size:
        return np.where(np.abs(numbers) < _LONGEST // 1000, numbers.astype(np.int64) * 1000, INVALID)
    if numbers.dtype.kind == "f":
        valid = np.abs(numbers) < _LONGEST // 1000  # false for NaN
        numbers = np.where(valid, numbers, 0.0)
        whole = np.floor(numbers)
        # microseconds and their fraction apart: together, as nanoseconds, they do not fit a float
        found = whole.astype(np.int64) * 1000 + np.rint((numbers - whole) * 1000).astype(np.int64)
        return np.where(valid, found, INVALID)
    is_text = numbers.dtype.kind == "U" and all(isinstance(time, str) for time in times)
    if is_text and (equally_long := _of_equal_texts(times)) is not None:
        return equally_long
    return np.fromiter((_of_one(time) for time in times), np.int64, len(times))


def _of_equal_texts(times: Sequence[str]) -> Ints | None:
    """Texts that all look like 1704161511420306.491, as vendors write them; None if some look otherwise."""
    length = len(times[0])
    text = "".join(times)
    if not 4 < length <= _MOST_DIGITS or len(text) != length * len(times) or not text.isascii():
        return None
    digits = np.frombuffer(text.encode(), np.uint8).reshape(len(times), length).astype(np.int64) - ord("0")
    point = digits[:, -4].copy()
    digits = np.delete(digits, -4, axis=1)
    if (point != ord(".") - ord("0")).any() or (digits < 0).any() or (digits > 9).any():
        return None
    return digits @ 10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)


def _of_one(time: Any) -> int:
    if isinstance(time, str):
        whole, _, fraction = time.strip().partition(".")
        if whole.isdecimal() and len(whole) < 17 and (not fraction or fraction.isdecimal()):
            return int(whole) * 1000 + int(fraction[:3].ljust(3, "0"))
    try:
        found = int(Decimal(str(time)) * 1000)
    except (ArithmeticError, ValueError, TypeError):
        return INVALID
    return found if abs(found) < _LONGEST else INVALID
