"""Batches as loaders make them: tensors inside dictionaries, lists, tuples and objects, to any depth."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

Change = Callable[[Any], Any]


def _unchanged(item: Any) -> Any:
    return item


def changed(batch: Any, change: Change, change_mover: Change = _unchanged) -> Any:
    """The same structure with other tensors, and with other objects where these can move themselves (`.to`)."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return _changed_mapping(batch, change, change_mover)
    if hasattr(batch, "to") and not isinstance(batch, type):
        return change_mover(batch)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(changed(item, change, change_mover) for item in batch))
    if isinstance(batch, (list, tuple)):
        return _changed_sequence(batch, change, change_mover)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        names = [field.name for field in dataclasses.fields(batch) if field.init]
        made = {name: changed(getattr(batch, name), change, change_mover) for name in names}
        return dataclasses.replace(batch, **made)
    return batch


def _changed_mapping(batch: Mapping[Any, Any], change: Change, change_mover: Change) -> Any:
    items = {key: changed(value, change, change_mover) for key, value in batch.items()}
    if type(batch) is dict:
        return items
    made: Any = copy.copy(batch)  # keeps what a subclass holds beside its items
    try:
        made.update(items)
    except (AttributeError, TypeError):
        return items
    return made


def _changed_sequence(batch: Sequence[Any], change: Change, change_mover: Change) -> Any:
    items = [changed(item, change, change_mover) for item in batch]
    try:
        return type(batch)(items)  # type: ignore[call-arg]
    except TypeError:
        return items if isinstance(batch, list) else tuple(items)


def tensors(batch: Any) -> Iterator[Tensor]:
    """Every tensor of a batch, but those inside objects that move themselves."""
    found: list[Tensor] = []

    def see(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    changed(batch, see)
    yield from found
