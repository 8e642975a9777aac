"""How many threads a comparison takes."""

from __future__ import annotations

import os


def thread_count() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
