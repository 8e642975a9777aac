"""The tensors of a program on one side, and what can be seen of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

MOST_TENSORS = 10


@dataclass
class Side:
    """One of the two runs: its device and its tensors, in the order in which they were made."""

    device: str
    tensors: list[Tensor] = field(default_factory=list)
    first_versions: dict[int, int] = field(
        default_factory=dict
    )  # by tensor: kernels may write to fresh results

    def keep(self, made: Sequence[Tensor]) -> None:
        """Add new tensors; the oldest make way."""
        known = set(map(id, self.tensors))
        self.first_versions.update(
            (id(tensor), _version(tensor)) for tensor in made if id(tensor) not in known
        )
        self.tensors = [*self.tensors, *made][-MOST_TENSORS:]

    def writes(self, tensor: Tensor) -> int:
        """How often it was written to since it was kept."""
        return _version(tensor) - self.first_versions.get(id(tensor), 0)


def _version(tensor: Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode, or a view of such a one
        return 0


@dataclass(frozen=True)
class Raised:
    """The error of a step."""

    kind: str
    message: str


Outcome = Raised | list[Tensor]


def run(step: Callable[[Side], Any], side: Side) -> Outcome:
    """Do a step; its tensors, or its error in words that do not depend on the device."""
    try:
        result = step(side)
    except Exception as error:
        return Raised(type(error).__name__, _without_device(str(error).split("\n")[0], side.device))
    return [each for each in _flat(result) if isinstance(each, Tensor)]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [leaf for each in result for leaf in _flat(each)]
    return [result]


def _without_device(message: str, device: str) -> str:
    """PyTorch names devices, dispatch keys and tensor types in its errors."""
    message = re.sub(rf"\b{device}(:\d+)?\b", "DEVICE", message)
    return re.sub(r"torch\.(\w+\.)?(\w+)Tensor", r"\2Tensor", message)


def observations(side: Side) -> list[dict[str, Any]]:
    """What can be seen of every tensor, without changing any."""
    memory: dict[int, int] = {}
    return [{"version": side.writes(tensor), **_seen(tensor, memory)} for tensor in side.tensors]


def _seen(tensor: Tensor, memory: dict[int, int]) -> dict[str, Any]:
    try:
        return _seen_of(tensor, memory)
    except RuntimeError as error:  # some views can't be looked at once their base has changed
        return {"error": str(error)}


def _seen_of(tensor: Tensor, memory: dict[int, int]) -> dict[str, Any]:
    seen = _geometry(tensor)
    storage = tensor.untyped_storage()
    seen |= {
        "storage": memory.setdefault(storage._cdata, len(memory)),
        "storage bytes": storage.nbytes(),
        "view": tensor._is_view() and not (tensor._base is not None and tensor._base.is_inference()),
        "leaf": tensor.is_leaf,
        "values": _values(tensor),
    }
    gradient = tensor.grad if tensor.is_leaf else None
    if gradient is not None:
        seen |= {f"gradient's {name}": value for name, value in _geometry(gradient).items()}
        seen["gradient"] = _values(gradient)
    return seen


def _geometry(tensor: Tensor) -> dict[str, Any]:
    strides = [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]
    return {
        "dtype": tensor.dtype,
        "shape": tuple(tensor.shape),
        "strides": strides if tensor.numel() else [],
        "offset": tensor.storage_offset(),
        "requires_grad": tensor.requires_grad,
        "conjugate": tensor.is_conj(),
        "negative": tensor.is_neg(),
    }


def _values(tensor: Tensor) -> Any:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return torch.view_as_real(plain) if plain.is_complex() else plain


def difference(cpu: list[dict[str, Any]], device: list[dict[str, Any]]) -> str:
    """The first thing that is not the same; "" if there is none."""
    for number, (expected, found) in enumerate(zip(cpu, device, strict=True)):
        for name in {**expected, **found}:
            one, other = expected.get(name), found.get(name)
            same = (
                _same(one, other) if isinstance(one, Tensor) and isinstance(other, Tensor) else one == other
            )
            if not same:
                return f"tensor {number}: {name}: {one} on the CPU, {other} on the device"
    return ""


def _same(one: Tensor, other: Tensor) -> bool:
    return (
        one.dtype is other.dtype
        and one.shape == other.shape
        and torch.allclose(one, other, 0, 0, equal_nan=True)
    )
