"""Shares the parts of large calls among threads: one call after the other would keep one core busy."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

import torch

Part = TypeVar("Part")
Found = TypeVar("Found")


class PartSharing:
    """Threads for parts, each on one core. What is divided once more within a part is worked on in turn."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._local = threading.local()
        self._executor = ThreadPoolExecutor(threads, initializer=self._begin) if threads > 1 else None

    def __enter__(self) -> PartSharing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def _begin(self) -> None:
        self._local.is_inside = True
        torch.set_num_threads(1)

    def map(self, work: Callable[[Part], Found], parts: Sequence[Part]) -> Iterator[Found]:
        """What comes of each part, in their order; no more are under way than there are threads, and as many wait."""
        if self._executor is None or len(parts) < 2 or getattr(self._local, "is_inside", False):
            yield from map(work, parts)
            return
        waiting: deque[Future[Found]] = deque()
        try:
            for part in parts:
                waiting.append(self._executor.submit(work, part))
                if len(waiting) > self._threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
