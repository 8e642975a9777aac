"""Where several answers are right: positions of equal values, results without order, casts that are not defined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
_ONLY_POSITIONS = {"aten::argmax", "aten::argmin", "aten::argsort"}  # the others give values first
_OVER_ALL_BY_DEFAULT = {"aten::argmax", "aten::argmin"}
_LAST_BY_DEFAULT = -1
_CASTS = {"aten::_to_copy", "aten::copy_"}
_UNIQUE = {"aten::_unique2", "aten::_unique"}
Results = Sequence[torch.Tensor | None]


def are_positions(operator: str, output: int) -> bool:
    """Whether this output of an operator holds positions in its first argument."""
    if operator in _ONLY_POSITIONS:
        return output == 0
    return output == 1 and (operator in _ALONG_DIMENSION or operator in _OVER_IMAGE)


def differ_where_casts_are_undefined(
    operator: str, arguments: Mapping[str, Any], mine: torch.Tensor, right: torch.Tensor
) -> bool:
    """Whether whole numbers differ only where they were cast from numbers that their dtype can't hold: what becomes
    of those, each device decides."""
    source: torch.Tensor | None = arguments.get("src", arguments.get("self"))
    is_whole = not (mine.is_floating_point() or mine.is_complex() or mine.dtype == torch.bool)
    if operator not in _CASTS or source is None or not source.is_floating_point() or not is_whole:
        return False
    limits, values = torch.iinfo(mine.dtype), source.expand_as(mine).double()
    fits = (values > float(limits.min) - 1) & (values < float(limits.max) + 1)
    return bool((mine == right)[fits].all())


def is_order_free(operator: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the program does not care for the order of the results."""
    return arguments.get("sorted") is False and (operator in _UNIQUE or operator == "aten::topk")


def in_order(operator: str, arguments: Mapping[str, Any], results: Results) -> list[torch.Tensor | None]:
    """Results whose order is free, in order."""
    values, *others = results
    if values is None or not values.numel():
        return list(results)
    if operator in _UNIQUE:
        order = values.argsort()
        ranks = order.argsort()
        inverse, counts = (*others, None, None)[:2]
        found = [values[order], ranks[inverse] if inverse is not None and inverse.numel() else inverse]
        return [*found, counts[order] if counts is not None and counts.numel() else counts][: len(results)]
    dimension = arguments.get("dim", _LAST_BY_DEFAULT) if values.dim() else 0
    order = values.argsort(dim=dimension, descending=arguments.get("largest") is not False)
    return [each.gather(dimension, order) if each is not None else None for each in results]


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
            default = None if operator in _OVER_ALL_BY_DEFAULT else _LAST_BY_DEFAULT
            dimension = arguments.get("dim", default)
            if dimension is None:
                source, dimension, mine, right = source.flatten(), 0, mine.reshape(1), right.reshape(1)
            kept = arguments.get("keepdim", False) or mine.dim() == source.dim()
            indices = [each if kept else each.unsqueeze(dimension) for each in (mine, right)]
            chosen, best = (_at(source, each, dimension) for each in indices)
        else:
            return False
    except (IndexError, RuntimeError):  # positions outside of the argument
        return False
    return bool(((chosen == best) | (chosen.isnan() & best.isnan())).all())


def _at(source: torch.Tensor, indices: torch.Tensor, dimension: int) -> torch.Tensor:
    count = source.shape[dimension] if source.dim() else 1
    if bool((indices < 0).any()) or bool((indices >= count).any()):
        raise IndexError("outside")
    return source.gather(dimension, indices.long()) if source.dim() else source
