"""Arguments and results of a call, as small keys that can be compared, and as a record has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from torchferry.accuracy.model import TensorRef, Value
from torchferry.ops.capture.values import key_of, value_of
from torchferry.ops.model import Special

_AS_THEY_ARE = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def key_of_number(value: float) -> Any:
    """0.0 and -0.0 are equal, and nan is not."""
    return value if value == value and value else repr(value)


def key_of_odd(value: Any) -> Any:
    """Of what is no tensor, list, whole number or text."""
    return value if type(value) in _AS_THEY_ARE else key_of(value)


class Numbering:
    """Puts references in the place of tensors, in the order in which they are met."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, value: Any) -> Value:
        """As a record has it."""
        if isinstance(value, torch.Tensor):
            self._count += 1
            return TensorRef(self._count - 1)
        if isinstance(value, (list, tuple)):
            return tuple(map(self.value, value))
        if value is None or type(value) in (bool, int, float, str):
            return value  # type: ignore[no-any-return]
        found = value_of(key_of(value))
        return found if isinstance(found, (Special, bool, int, float, str)) else str(value)


def names_of(side: str, name: str, value: Any) -> Iterator[str]:
    """The names of the tensors of an argument or result: input/self, input/tensors/tensors_0."""
    if isinstance(value, torch.Tensor):
        yield f"{side}/{name}"
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from names_of(f"{side}/{name}", f"{name}_{index}", item)
