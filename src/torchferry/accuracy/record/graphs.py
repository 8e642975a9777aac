"""Tells when a captured graph of a device is run again: it writes to memory without a call that could be seen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_REPLAY = "replay"


class GraphReplays:
    """Watches the class of graphs that PyTorch has for CUDA."""

    def __init__(self, replayed: Callable[[], None]) -> None:
        self._replayed = replayed
        self._kind: Any = getattr(torch.cuda, "CUDAGraph", None)
        self._original: Callable[..., Any] | None = None

    def watch(self) -> None:
        """From now on."""
        if self._kind is None or self._original is not None:
            return
        original = self._original = self._kind.__dict__.get(_REPLAY)
        if original is None:
            return
        replayed = self._replayed

        @functools.wraps(original)
        def replay(graph: Any, *args: Any, **kwargs: Any) -> Any:
            answer = original(graph, *args, **kwargs)
            replayed()
            return answer

        setattr(self._kind, _REPLAY, replay)

    def unwatch(self) -> None:
        """Leave nothing behind."""
        if self._original is not None:
            setattr(self._kind, _REPLAY, self._original)
            self._original = None
