"""What can be seen of a call: for every tensor its values, dtype, shape, stride, device and whose memory it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .places import Place

# A dtype, or a number of dimensions, that a function of the emulated toolkit does not take on the hardware either.
_LIMIT = re.compile(
    r"should be in dtype support list \[|tensor cannot be (?:smaller|larger) than \d+ dimensions"
)


@dataclass(frozen=True)
class Tensor:
    """The facts about one tensor; its values are a copy on the CPU, None where the operator leaves them undefined."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    is_on_place: bool
    device: str
    needs_gradient: bool
    is_view: bool
    lazy: str  # "conj", "neg" or both: bits that are resolved when the values are read
    same_as: str  # the name of an earlier tensor that is this very object
    shares_with: tuple[str, ...]  # earlier tensors with the same memory
    values: torch.Tensor | None


@dataclass(frozen=True)
class Raised:
    """The call raised."""

    type: str
    message: str
    is_limit: bool = False  # the toolkit's own limits refuse it, so that there is nothing to compare


@dataclass(frozen=True)
class Seen:
    """The call returned: what it returned and what became of its arguments, by name."""

    things: dict[str, Any]  # Tensor, or a plain value


Observation = Raised | Seen


def look(place: Place, has_values: bool, trees: dict[str, Any]) -> Seen:
    """Facts about everything in some named trees; a tensor in a later one can be a view of one in an earlier."""
    things: dict[str, Any] = {}
    storages: dict[int, list[str]] = {}
    objects: dict[int, str] = {}
    for root, tree in trees.items():
        for path, leaf in pytree.tree_flatten_with_path(tree)[0]:
            name = root + pytree.keystr(path)
            if not isinstance(leaf, torch.Tensor):
                things[name] = "the device" if leaf == place.device else leaf
                continue
            sharing = storages.setdefault(leaf.untyped_storage()._cdata, [])
            first = objects.setdefault(id(leaf), name)
            same_as = "" if first == name else first
            things[name] = _facts(leaf, place, has_values, same_as, tuple(sharing))
            sharing.append(name)
    return Seen(things)


def _facts(
    tensor: torch.Tensor, place: Place, has_values: bool, same_as: str, shares_with: tuple[str, ...]
) -> Tensor:
    lazy = " ".join(word for word, is_set in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if is_set)
    return Tensor(
        dtype=tensor.dtype,
        shape=tuple(tensor.shape),
        stride=tensor.stride(),
        offset=int(tensor.storage_offset()),
        is_on_place=tensor.device == place.device,
        device=str(tensor.device),
        needs_gradient=tensor.requires_grad,
        is_view=tensor._is_view(),
        lazy=lazy,
        same_as=same_as,
        shares_with=shares_with,
        values=_values(tensor) if has_values else None,
    )


def _values(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return tensor.detach().to("cpu", copy=True).resolve_conj().resolve_neg()


def observe(call: Callable[[], Seen]) -> Observation:
    """What a call did."""
    try:
        return call()
    except Exception as error:
        words = " ".join(str(error).split())
        return Raised(type(error).__name__, words[:300], _LIMIT.search(words) is not None)
