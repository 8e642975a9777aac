"""What a trace does not say and an analysis wants to know: collected garbage, autocast, the size of batches."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.profiler import record_function

from torchferry.observe.modes import has_compiled

_MOST_LOOKED_AT = 100  # items of a batch


class Seen:
    """Watches from `begin` to `end`."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._collection: Any = None  # the mark of the one that is going on
        self._uses_autocast = False
        self._batch: int | None = None
        self._undo: list[Callable[[], None]] = []

    @property
    def autocast(self) -> bool | None:
        """Whether autocast was on; None where compiled code may have switched it on inside."""
        if self._uses_autocast:
            return True
        return None if has_compiled() else False

    @property
    def batch(self) -> int | None:
        """How many samples a DataLoader has given at a time."""
        return self._batch

    def begin(self) -> None:
        """From now on."""
        self._uses_autocast = _is_autocast_on(self._device)
        gc.callbacks.append(self._collects)
        self._undo.append(lambda: gc.callbacks.remove(self._collects))
        self._replace(torch.amp.autocast_mode.autocast, "__enter__", self._entering_autocast)
        self._replace(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", self._taking_batch)

    def end(self) -> None:
        """Until now; everything is as it was."""
        while self._undo:
            self._undo.pop()()
        self._collection = None

    def _replace(self, owner: Any, name: str, wrapped: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, wrapped(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def _collects(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collection = record_function(f"torchferry::gc generation {info['generation']}")
            self._collection.__enter__()
        elif self._collection is not None:
            mark, self._collection = self._collection, None
            mark.__exit__(None, None, None)

    def _entering_autocast(self, original: Any) -> Any:
        def enter(autocast: Any) -> Any:
            self._uses_autocast = self._uses_autocast or bool(getattr(autocast, "_enabled", False))
            return original(autocast)

        return enter

    def _taking_batch(self, original: Any) -> Any:
        def following(iterator: Any) -> Any:
            batch = original(iterator)
            if self._batch is None:
                self._batch = _samples(batch)
            return batch

        return following


def _is_autocast_on(device: str) -> bool:
    try:
        return bool(torch.is_autocast_enabled(device))
    except TypeError:  # before 2.4 it took no type
        return bool(torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled())
    except RuntimeError:  # a device that has none
        return False


def _samples(batch: Any) -> int | None:
    """The length of the first tensor in it."""
    waiting = [batch]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        item = waiting.pop(0)
        if isinstance(item, torch.Tensor):
            if item.dim() > 0:
                return int(item.shape[0])
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)
    return None
