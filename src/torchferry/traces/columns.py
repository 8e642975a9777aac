"""Events as columns of numbers, and the texts that the numbers stand for."""

from __future__ import annotations

from dataclasses import dataclass, fields
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
        """When each was over."""
        return self.start + self.duration

    def take(self, rows: Any) -> Columns:
        """Some rows: numbers or a mask."""
        return Columns(*(getattr(self, field.name)[rows] for field in fields(self)))

    def where(self, *kinds: EventKind) -> Columns:
        """The events of some kinds."""
        return self.take(np.isin(self.kind, kinds))

    @classmethod
    def joined(cls, parts: list[Columns]) -> Columns:
        """All rows of several."""
        if not parts:
            return cls(*(np.empty(0, np.int64) for _ in fields(cls)))
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def in_order(self) -> Columns:
        """By thread, and there from outside in: callers before what they call."""
        return self.take(
            np.lexsort((self.kind != EventKind.ANNOTATION, -self.duration, self.start, self.thread))
        )
