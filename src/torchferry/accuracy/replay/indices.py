"""Whether positions that differ from the right ones point to equal values: among equal ones, every choice is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

_ALONG_DIMENSION = {
    "aten::max", "aten::min", "aten::sort", "aten::topk", "aten::argmax", "aten::argmin", "aten::argsort",
    "aten::median", "aten::nanmedian", "aten::kthvalue", "aten::mode", "aten::cummax", "aten::cummin",
}  # fmt: skip
_OVER_IMAGE = {
    "aten::max_pool2d_with_indices": 2, "aten::max_pool3d_with_indices": 3, "aten::max_pool1d_with_indices": 1,
    "aten::adaptive_max_pool2d": 2, "aten::adaptive_max_pool3d": 3, "aten::fractional_max_pool2d": 2,
    "aten::fractional_max_pool3d": 3,
}  # fmt: skip
_LAST_BY_DEFAULT = -1


def point_to_equal_values(
    operator: str, arguments: Mapping[str, Any], mine: torch.Tensor, right: torch.Tensor
) -> bool:
    """`mine` and `right` are positions in the operator's first argument."""
    source: torch.Tensor = arguments.get("self", arguments.get("input"))
    if source is None or mine.dtype.is_floating_point or mine.shape != right.shape:
        return False
    try:
        if operator in _OVER_IMAGE:
            flat = source.flatten(-_OVER_IMAGE[operator])
            chosen, best = (_at(flat, each.flatten(-_OVER_IMAGE[operator]), -1) for each in (mine, right))
        elif operator in _ALONG_DIMENSION:
            dimension = arguments.get("dim", _LAST_BY_DEFAULT)
            if dimension is None:
                source, dimension = source.flatten(), 0
            kept = arguments.get("keepdim", False) or mine.dim() == source.dim()
            indices = [each if kept else each.unsqueeze(dimension) for each in (mine, right)]
            chosen, best = (_at(source, each, dimension) for each in indices)
        else:
            return False
    except (IndexError, RuntimeError):  # positions outside of the argument
        return False
    return bool(((chosen == best) | (chosen.isnan() & best.isnan())).all())


def _at(source: torch.Tensor, indices: torch.Tensor, dimension: int) -> torch.Tensor:
    if bool((indices < 0).any()) or (source.dim() and bool((indices >= source.shape[dimension]).any())):
        raise IndexError("outside")
    return source.gather(dimension, indices.long()) if source.dim() else source
