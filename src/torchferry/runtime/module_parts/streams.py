"""What streams and events share where a device computes at once: all work of a stream is done when a call returns."""

from __future__ import annotations

import time
from typing import Any

_LEAST_PRIORITY, _GREATEST_PRIORITY = 0, -1


class TimedEvent:
    """An event that keeps the time at which it was recorded."""

    _timed: bool
    _recorded: int | None

    def _mark(self) -> None:
        self._recorded = time.perf_counter_ns()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to another one."""
        if not (self._timed and end_event._timed):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded is None or end_event._recorded is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        span: int = end_event._recorded - self._recorded
        return span / 1e6


class EventsOfStream:
    """Events in a stream, and the priorities that it can have."""

    _event_class: Any

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority that a stream can have."""
        return _LEAST_PRIORITY, _GREATEST_PRIORITY

    def record_event(self, event: Any = None) -> Any:
        """Record an event, a new one if none is given."""
        event = self._event_class() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Let later work of this stream wait for an event."""
        event.wait(self)
