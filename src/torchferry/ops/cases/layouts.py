"""How a tensor may lie in its memory, by the names that users give. Imports no torch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

from torchferry.errors import InputError
from torchferry.ops.cases.model import TensorInput, contiguous

Stride = tuple[int, ...]


def _transposed(shape: Stride) -> Stride:
    """The last two dimensions swapped in memory."""
    swapped = contiguous((*shape[:-2], shape[-1], shape[-2]))
    return (*swapped[:-2], swapped[-1], swapped[-2])


def _channels_last(shape: Stride) -> Stride:
    """The second dimension is the innermost one."""
    moved = contiguous((shape[0], *shape[2:], shape[1]))
    return (moved[0], moved[-1], *moved[1:-1])


def _expanded(shape: Stride) -> Stride:
    """The first dimension repeats one row."""
    return (0, *contiguous(shape[1:]))


def _sliced(shape: Stride) -> Stride:
    """Every second element of the last dimension of something twice as wide."""
    return tuple(2 * step for step in contiguous(shape))


# name -> (how, the smallest and the largest number of dimensions)
_BY_NAME: dict[str, tuple[Callable[[Stride], Stride], int, int]] = {
    "contiguous": (contiguous, 0, 64),
    "transposed": (_transposed, 2, 64),
    "channels_last": (_channels_last, 4, 4),
    "channels_last_3d": (_channels_last, 5, 5),
    "expanded": (_expanded, 1, 64),
    "sliced": (_sliced, 1, 64),
}
LAYOUTS = (*_BY_NAME, "strides", "offset")


def laid_out(tensor: TensorInput, layout: str, text: str) -> TensorInput:
    """The tensor in a layout: transposed, strides(1,20), offset(3); `text` is for errors."""
    name, _, inner = layout.partition("(")
    numbers = _numbers(inner, text)
    if name == "offset":
        if len(numbers) != 1:
            raise InputError(f"--input {text}: offset takes one number, as in offset(3)")
        return replace(tensor, offset=numbers[0])
    if name == "strides":
        if len(numbers) != len(tensor.shape):
            raise InputError(
                f"--input {text}: strides needs a number for each of {len(tensor.shape)} dimensions"
            )
        return replace(tensor, stride=tuple(numbers))
    how, fewest, most = _BY_NAME[name]
    if not fewest <= len(tensor.shape) <= most:
        raise InputError(f"--input {text}: a tensor of {len(tensor.shape)} dimensions can't be {name}")
    return replace(tensor, stride=None if name == "contiguous" else how(tensor.shape))


def same_order(stride: Stride, shape: Stride) -> Stride:
    """Strides for another size that keep the order of the dimensions in memory, and repeat where these do."""
    inner_first = sorted(
        range(len(shape)), key=lambda dim: (stride[dim], -dim) if stride[dim] else (math.inf, -dim)
    )
    steps, step = [0] * len(shape), 1
    for dim in inner_first:
        if stride[dim]:
            steps[dim] = step
            step *= max(shape[dim], 1)
    return tuple(steps)


def _numbers(inner: str, text: str) -> list[int]:
    words = [word.strip() for word in inner.rstrip(")").split(",") if word.strip()]
    if not all(re.fullmatch(r"\d+", word) for word in words):
        raise InputError(f"--input {text}: ({inner} are no numbers of elements; write strides(1,20)")
    return [int(word) for word in words]
