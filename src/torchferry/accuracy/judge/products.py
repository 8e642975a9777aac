"""How far the elements of matrix products and convolutions move when inputs are slightly off, from sums of squares: at
the cost of a row and a column of the product, or of one image with one channel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from torchferry.accuracy.judge.margins import UNIT
from torchferry.accuracy.model import Call
from torchferry.operators.names import without_overload

aten = torch.ops.aten
Arguments = Mapping[str, Any]
_FACTORS = {
    "aten::mm": ("self", "mat2"),
    "aten::bmm": ("self", "mat2"),
    "aten::addmm": ("mat1", "mat2"),
    "aten::baddbmm": ("batch1", "batch2"),
    "aten::linear": ("input", "weight"),
}
_CONVOLUTIONS = (
    "aten::convolution", "aten::_convolution", "aten::cudnn_convolution", "aten::miopen_convolution", "aten::mkldnn_convolution",
    "aten::convolution_overrideable",
)  # fmt: skip
_BACKWARD = ("aten::convolution_backward", "aten::convolution_backward_overrideable")
_BOTH = math.sqrt(2.0)  # either factor is off
_TYPICAL = 0.35  # of the mean over all elements: none is taken for less sensitive


def moved_by_rounding(call: Call, given: Arguments, output: int) -> torch.Tensor | None:
    """How far each element of a result moves when every input is off by `UNIT` of itself, root mean square; of
    convolutions, the mean over all elements. None: it is not known for this call."""
    name = without_overload(call.operator)
    if name in _FACTORS:
        found = _moved_product(name, given)
    elif given.get("transposed"):
        return None
    elif name in _CONVOLUTIONS:
        found = _moved_convolution(given)
    elif name in _BACKWARD:
        found = _moved_gradient(given, call.outputs[output].name)
    else:
        return None
    return found if found is not None and bool(found.isfinite().all()) else None


def _moved_product(name: str, given: Arguments) -> torch.Tensor | None:
    """As if the squares of each row and each column were related as those of all rows and all columns are."""
    left, right = (given[each] for each in _FACTORS[name])
    if "linear" in name:
        right = right.transpose(-1, -2)
    if right.dim() < 2:
        return None
    rows, columns = (
        tensor.square().sum(dimension, keepdim=True, dtype=torch.float64).sqrt_()
        for tensor, dimension in ((left, -1), (right, -2))
    )
    together = (_squares(left, -2) * _squares(right, -1)).sum(-1)
    apart = (rows.square().sum((-2, -1)) * columns.square().sum((-2, -1))).div_(left.shape[-1])
    related = (together / apart).nan_to_num_(0.0).clamp_max_(1.0).sqrt_()[..., None, None]
    scale = abs(float(given.get("alpha", 1))) * _BOTH * UNIT / math.sqrt(left.shape[-1])
    found: torch.Tensor = rows.mul_(related * scale) * columns
    return found


def _squares(tensor: torch.Tensor, dimension: int) -> torch.Tensor:
    return tensor.square().sum(dimension, dtype=torch.float64)


def _moved_convolution(given: Arguments) -> torch.Tensor:
    """All images are added up to one before, and where there are no groups, all channels that come out as well."""
    images, weight = given.get("input", given.get("self")), given["weight"]
    groups = given["groups"]
    summed = _channels(weight, groups, 0)
    # of one channel out: the same places as those of all
    found = aten.convolution(
        images.square().sum(0, keepdim=True), summed, None, given["stride"], given["padding"], given["dilation"],
        False, [0] * (weight.dim() - 2), groups,
    )  # fmt: skip
    count = images.shape[0] * weight.shape[0] * found[0, 0].numel()
    return _typical(found, count, _BOTH)


def _typical(squares: torch.Tensor, count: int, factors: float) -> torch.Tensor:
    """Of elements whose squares have this sum."""
    return squares.sum(dtype=torch.float64).div(count).sqrt_().mul_(_TYPICAL * factors * UNIT)


def _channels(tensor: torch.Tensor, groups: int, dimension: int) -> torch.Tensor:
    squares = tensor.square()
    return squares.sum(dimension, keepdim=True) if groups == 1 else squares


def _moved_gradient(given: Arguments, name: str) -> torch.Tensor | None:
    gradient, images, weight, groups = (given[each] for each in ("grad_output", "input", "weight", "groups"))
    place = next((at for at in range(3) if name == f"output/output_{at}"), None)
    if place == 2:
        return _typical(gradient.square(), gradient.shape[1], 1.0)
    if place == 0:
        found = _backward(
            given,
            gradient.square().sum(0, keepdim=True),
            images[:1] if groups > 1 else images[:1, :1],
            _channels(weight, groups, 1),
            0,
        )
        return _typical(found, images.numel(), _BOTH)
    if place == 1:
        found = _backward(
            given,
            _channels(gradient, groups, 1),
            _channels(images, groups, 1),
            weight if groups > 1 else weight[:1, :1],
            1,
        )
        return _typical(found, weight.numel(), _BOTH)
    return None


def _backward(
    given: Arguments, gradient: torch.Tensor, images: torch.Tensor, weight: torch.Tensor, place: int
) -> torch.Tensor:
    mask = [at == place for at in range(3)]
    found: torch.Tensor = aten.convolution_backward(
        gradient.contiguous(), images.contiguous(), weight.contiguous(), None, given["stride"], given["padding"],
        given["dilation"], False, given["output_padding"], given["groups"], mask,
    )[place]  # fmt: skip
    return found
