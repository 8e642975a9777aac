"""What a DataLoader of this process computes itself is the host's, on every machine: who watches is told of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def around_loading(context: Callable[[], AbstractContextManager[Any]]) -> None:
    """From now on, be in this context while a DataLoader makes or fetches a batch."""
    from torch.utils.data import dataloader

    iterator: Any = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        with context():
            return original(self)

    iterator.__next__ = following
