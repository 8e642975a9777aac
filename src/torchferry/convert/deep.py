"""Room for code that is nested more deeply than Python's own stack lets us follow."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

# Long chains (`a + b + ...`, `elif`) are nested in the tree. Python compiles a few thousand levels; each needs
# several calls of ours, and in Python 3.10 each call takes about a kilobyte of the stack.
_LIMIT = 200_000
_STACK = 512 << 20  # address space; only what is used is taken from memory


def with_deep_stack(work: Callable[[], Result]) -> Result:
    """What `work` answers, or raises, in a thread that may recurse far more deeply than this one."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(_LIMIT)
    try:
        thread = threading.Thread(target=run, daemon=True)  # must not keep a process that was interrupted
        try:
            thread.start()
        except RuntimeError:  # where the address space is limited
            raise RecursionError("nested too deeply, and there is no room for a larger stack") from None
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]
