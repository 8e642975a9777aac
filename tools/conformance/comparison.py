"""The differences between what the CPU did and what the device did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .observations import Observation, Raised, Tensor
from .records import Kind

Found = tuple[Kind, str, str]  # what differs, where, in words


def compare(expected: Observation, actual: Observation) -> list[Found]:
    """Everything that differs; empty if the device did what the CPU did."""
    if isinstance(expected, Raised) or isinstance(actual, Raised):
        return list(_errors(expected, actual))
    found: list[Found] = []
    for name in [*expected.things, *(name for name in actual.things if name not in expected.things)]:
        if name not in actual.things:
            found.append((Kind.STRUCTURE, name, "the CPU gives it, the device does not"))
        elif name not in expected.things:
            found.append((Kind.STRUCTURE, name, "the device gives it, the CPU does not"))
        else:
            one, other = expected.things[name], actual.things[name]
            found += [(kind, name, words) for kind, words in _things(one, other)]
    return found


def _errors(expected: Observation, actual: Observation) -> Iterator[Found]:
    if isinstance(expected, Raised) and isinstance(actual, Raised):
        if expected.type != actual.type:
            words = f"the CPU raises {expected.type} ({expected.message}), the device {actual.type} ({actual.message})"
            yield Kind.ERROR, "call", words
    elif isinstance(actual, Raised):
        yield Kind.ERROR, "call", f"only the device raises: {actual.type}: {actual.message}"
    elif isinstance(expected, Raised):
        yield Kind.ERROR, "call", f"only the CPU raises: {expected.type}: {expected.message}"


def _things(expected: Any, actual: Any) -> Iterator[tuple[Kind, str]]:
    if isinstance(expected, Tensor) and isinstance(actual, Tensor):
        yield from _tensors(expected, actual)
    elif type(expected) is not type(actual):
        yield Kind.STRUCTURE, f"{type(actual).__name__} instead of {type(expected).__name__}"
    elif expected != actual and not (_is_nan(expected) and _is_nan(actual)):
        yield Kind.VALUE, f"{actual!r} instead of {expected!r}"


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, complex)) and value != value


def _tensors(expected: Tensor, actual: Tensor) -> Iterator[tuple[Kind, str]]:
    if expected.is_on_place != actual.is_on_place:
        yield Kind.DEVICE, f"is on {actual.device}"
    if expected.dtype != actual.dtype:
        yield Kind.DTYPE, f"{actual.dtype} instead of {expected.dtype}"
    if expected.shape != actual.shape:
        yield Kind.SHAPE, f"{actual.shape} instead of {expected.shape}"
    elif expected.stride != actual.stride:
        yield Kind.STRIDE, f"{actual.stride} instead of {expected.stride} (shape {actual.shape})"
    yield from ((Kind.VIEW, words) for words in _sharing(expected, actual))
    if expected.needs_gradient != actual.needs_gradient:
        yield Kind.GRADIENT, f"requires_grad is {actual.needs_gradient} instead of {expected.needs_gradient}"
    if expected.shape == actual.shape and expected.dtype == actual.dtype:
        if expected.values is not None and actual.values is not None:
            yield from _values(expected.values, actual.values)


def _sharing(expected: Tensor, actual: Tensor) -> Iterator[str]:
    if expected.is_view != actual.is_view:
        yield "is a view" if actual.is_view else "is no view"
    if expected.same_as != actual.same_as:
        yield f"is {actual.same_as or 'a new tensor'} instead of {expected.same_as or 'a new tensor'}"
    if expected.shares_with != actual.shares_with:
        yield f"shares the memory of {_listed(actual.shares_with)} instead of {_listed(expected.shares_with)}"
    if expected.offset != actual.offset:
        yield f"begins at element {actual.offset} of its storage instead of {expected.offset}"
    if expected.lazy != actual.lazy:
        yield f"has the bits '{actual.lazy}' instead of '{expected.lazy}'"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def _values(expected: torch.Tensor, actual: torch.Tensor) -> Iterator[tuple[Kind, str]]:
    same = _same_bits(expected, actual)
    if bool(same.all()):
        return
    count = f"{int((~same).sum())} of {same.numel()} values"
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True, check_stride=False)
    except AssertionError:
        yield Kind.VALUE, f"{count} differ, {_largest(expected, actual, same)}"
    else:
        yield Kind.ROUNDING, f"{count} differ within the tolerances, {_largest(expected, actual, same)}"


def _same_bits(expected: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    """Element by element; any NaN is the same as any other, and 0.0 is not -0.0."""
    if expected.is_complex():
        return _same_bits(torch.view_as_real(expected), torch.view_as_real(actual)).all(-1)
    if not expected.is_floating_point():
        return expected == actual
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[expected.element_size()]
    same = expected.contiguous().view(bits) == actual.contiguous().view(bits)
    return same | (expected.isnan() & actual.isnan())


def _largest(expected: torch.Tensor, actual: torch.Tensor, same: torch.Tensor) -> str:
    """The pair of values that are farthest apart."""
    wide = torch.complex128 if expected.is_complex() else torch.float64
    one, other = expected[~same].to(wide), actual[~same].to(wide)
    place = int((one - other).abs().nan_to_num(torch.inf).argmax())
    return f"e.g. {other[place].item():.7g} instead of {one[place].item():.7g}"
