"""Marks and named ranges for a profiler. They appear in torch.profiler's traces."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

from torch.autograd.profiler import record_function


class _Stack(threading.local):
    """The nested ranges of one thread."""

    def __init__(self) -> None:
        self.open: list[Any] = []


class _Ranges:
    """The named ranges that are open: a stack a thread for push and pop, numbers for start and end."""

    def __init__(self) -> None:
        self._stack = _Stack()
        self._numbered: dict[int, Any] = {}
        self._numbers = itertools.count(1)

    def push(self, msg: str, *_: object, **__: object) -> int:
        """Open a range inside the last one; how deep it is."""
        self._stack.open.append(_opened(msg))
        return len(self._stack.open) - 1

    def pop(self, *_: object, **__: object) -> int:
        """Close the range that was opened last; how deep it was, -1 if there is none."""
        if not self._stack.open:
            return -1
        self._stack.open.pop().__exit__(None, None, None)
        return len(self._stack.open)

    def start(self, msg: str, *_: object, **__: object) -> int:
        """Open a range that may overlap others; its number."""
        number = next(self._numbers)
        self._numbered[number] = _opened(msg)
        return number

    def end(self, range_id: int, *_: object, **__: object) -> None:
        """Close a range by its number; one that isn't open is passed over, as the vendors do."""
        opened = self._numbered.pop(range_id, None)
        if opened is not None:
            opened.__exit__(None, None, None)


def _opened(msg: str) -> Any:
    opened: Any = record_function(msg)
    opened.__enter__()
    return opened


_ranges = _Ranges()


def mark(msg: str = "", *_: object, **__: object) -> None:
    """Mark a point in time."""
    with record_function(msg):
        pass


@contextlib.contextmanager
def named_range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A named range, as a with block or a decorator."""
    opened = _opened(msg)
    try:
        yield
    finally:
        opened.__exit__(None, None, None)


API = {
    "mark": mark,
    "range": named_range,
    "range_end": _ranges.end,
    "range_pop": _ranges.pop,
    "range_push": _ranges.push,
    "range_start": _ranges.start,
}
