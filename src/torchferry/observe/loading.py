"""What a DataLoader of this process computes itself is the host's, on every machine: who watches is told of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torchferry.observe.patching import Patches


def around_loading(patches: Patches, context: Callable[[], AbstractContextManager[Any]]) -> None:
    """Be in this context while a DataLoader makes or fetches a batch, until the patches are taken back."""
    from torch.utils.data import dataloader

    iterator: Any = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        with context():
            return original(self)

    patches.replace(iterator, "__next__", following)
