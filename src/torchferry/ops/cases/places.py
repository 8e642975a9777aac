"""Finds and replaces the values of a case, those in lists included; tensors of another shape keep what they held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torchferry.ops.cases.filling import smallest_size
from torchferry.ops.cases.layouts import same_order
from torchferry.ops.cases.memory import laid, overlaps
from torchferry.ops.cases.model import Case, CaseValue, Contents, Draw, TensorInput, contiguous

Place = tuple[str | int, ...]  # ("args", 0), ("kwargs", "dim"), ("args", 1, 2) is an item of a list


def places(case: Case) -> list[tuple[Place, CaseValue]]:
    """Every value with its place; a list comes before its items."""
    found: list[tuple[Place, CaseValue]] = []

    def visit(place: Place, value: CaseValue) -> None:
        found.append((place, value))
        if isinstance(value, tuple):
            for index, item in enumerate(value):
                visit((*place, index), item)

    for index, value in enumerate(case.args):
        visit(("args", index), value)
    for kind, pairs in (("kwargs", case.kwargs), ("init", case.init)):
        for name, value in pairs:
            visit((kind, name), value)
    return found


def put(case: Case, place: Place, value: CaseValue) -> Case:
    """The case with another value there."""
    return put_all(case, {place: value})


def put_all(case: Case, values: Mapping[Place, CaseValue]) -> Case:
    """The case with other values at these places."""

    def changed(place: Place, value: CaseValue) -> CaseValue:
        if place in values:
            return values[place]
        if isinstance(value, tuple):
            return tuple(changed((*place, index), item) for index, item in enumerate(value))
        return value

    return replace(
        case,
        args=tuple(changed(("args", index), value) for index, value in enumerate(case.args)),
        kwargs=tuple((name, changed(("kwargs", name), value)) for name, value in case.kwargs),
        init=tuple((name, changed(("init", name), value)) for name, value in case.init),
    )


def with_shapes(
    case: Case, shapes: Mapping[Place, tuple[int, ...]], dropped: int | None = None, plain: bool = False
) -> Case:
    """The case with other shapes: dimensions cut short, or with `dropped` the first of a dimension's slices alone.

    Recorded contents are cut alike. Indices stay within the smallest size, if they were so before.
    """
    values: dict[Place, CaseValue] = {}
    stored = dict(case.stored)
    for place, value in places(case):
        if place in shapes and isinstance(value, TensorInput):
            values[place] = _reshaped(value, shapes[place], dropped, plain, stored)
    smaller = replace(put_all(case, values), stored=stored)
    return _within(smaller, smallest_size(case), smallest_size(smaller))


def _reshaped(
    tensor: TensorInput, shape: tuple[int, ...], dropped: int | None, plain: bool, stored: dict[str, Any]
) -> TensorInput:
    stride = None if plain else _stride(tensor, shape, dropped)
    if tensor.contents.draw is not Draw.STORED:
        return replace(tensor, shape=shape, stride=stride, offset=0 if plain else tensor.offset)
    key = f"{tensor.contents.key.partition('@')[0]}@{'x'.join(map(str, shape))}"
    smaller = replace(tensor, shape=shape, stride=stride, offset=0)
    smaller = replace(smaller, stride=None) if overlaps(smaller) else smaller
    old = contiguous(tensor.shape) if tensor.stride is None else tensor.stride
    whole = stored[tensor.contents.key].as_strided(tensor.shape, old, tensor.offset)
    part = whole.select(dropped, 0) if dropped is not None else whole[tuple(slice(0, size) for size in shape)]
    stored[key] = laid(part, smaller)
    return replace(smaller, contents=replace(tensor.contents, key=key))


def _stride(tensor: TensorInput, shape: tuple[int, ...], dropped: int | None) -> tuple[int, ...] | None:
    if tensor.stride is None:
        return None
    old = tensor.stride if dropped is None else tensor.stride[:dropped] + tensor.stride[dropped + 1 :]
    gap = min(
        (step for step, size in zip(tensor.stride, tensor.shape, strict=True) if step and size > 1), default=1
    )
    stride = tuple(step * gap for step in same_order(old, shape))
    return None if stride == contiguous(shape) else stride


def _within(case: Case, before: int, after: int) -> Case:
    if not 0 < after < before:
        return case
    fitted = Contents(Draw.INTS, 0, after)
    values: dict[Place, CaseValue] = {
        place: replace(value, contents=fitted)
        for place, value in places(case)
        if isinstance(value, TensorInput)
        and value.contents.draw is Draw.INTS
        and value.contents.low == 0
        and after < value.contents.high <= before
    }
    return put_all(case, values)
