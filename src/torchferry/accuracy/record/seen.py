"""One call while it is being made: its tensors before and after, and the key that is equal for calls that look alike."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.accuracy.model import INPUT, OUTPUT, RandomState, TensorRecord, Value
from torchferry.accuracy.record.outside import Outside
from torchferry.accuracy.record.plans import Plan
from torchferry.accuracy.record.tensors import Content
from torchferry.accuracy.record.values import Numbering, names_of
from torchferry.observe.where import Site

Mark = str | tuple[str, str]  # a role; or a role, and why the tensor was not read


# a tensor of a call, the position of the argument that it belongs to, its outside and mark
Look = tuple[torch.Tensor, int, Outside, Mark]


class Seen:
    """A call."""

    __slots__ = (
        "args",
        "contents",
        "inputs",
        "key",
        "kwargs",
        "outputs",
        "plan",
        "random",
        "result",
        "site",
        "values",
    )

    def __init__(self, plan: Plan, site: Site, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.plan = plan
        self.site = site
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.inputs: list[Look] = []
        self.outputs: list[Look] = []  # results, then arguments that were written to and are not among them
        self.contents: list[Content] = []  # of the inputs, then of the outputs
        self.key: list[Any] = [plan]  # equal for calls whose tensors look alike
        self.values: list[Any] = []  # numbers and the like
        self.random: RandomState | None = None


class Templates:
    """The tensors of calls that look alike, without their contents."""

    __slots__ = ("encoded", "inputs", "outputs")

    def __init__(self, seen: Seen) -> None:
        names = [each for name, value in _given(seen) for each in names_of(INPUT, name, value)]
        self.inputs = _templates(names, seen.inputs)
        self.outputs = _templates(_output_names(seen, names), seen.outputs)
        self.encoded = ""  # both, once that is needed


def arguments_of(seen: Seen) -> tuple[tuple[str, Value], ...]:
    """By the names of the schema, in its order."""
    numbering = Numbering()
    values = [(name, numbering.value(value)) for name, value in _given(seen)]
    if len(seen.kwargs) > 1:
        order = seen.plan.positions
        values.sort(key=lambda each: order[each[0]])
    return tuple(values)


def results_of(seen: Seen) -> Value:
    """What the call answered."""
    return Numbering().value(seen.result)


def _given(seen: Seen) -> list[tuple[str, Any]]:
    return [*zip(seen.plan.names, seen.args), *seen.kwargs.items()]  # noqa: B905  the rest have their defaults


def _output_names(seen: Seen, input_names: list[str]) -> list[str]:
    """An argument that was written to keeps its name, also where the call answers with it."""
    written = seen.plan.written
    names = {
        id(tensor): OUTPUT + name.removeprefix(INPUT)
        for name, (tensor, position, *_) in zip(input_names, seen.inputs, strict=True)
        if position in written
    }
    results = seen.result if isinstance(seen.result, (list, tuple)) else [seen.result]
    plain = [
        name for place, value in enumerate(results) for name in names_of(OUTPUT, f"output_{place}", value)
    ]
    plain += [""] * (len(seen.outputs) - len(plain))
    return [names.get(id(look[0]), name) for look, name in zip(seen.outputs, plain, strict=True)]


def _templates(names: list[str], looks: list[Look]) -> tuple[TensorRecord, ...]:
    """What is known of the tensors without their contents."""
    found = []
    for name, (_, _, outside, mark) in zip(names, looks, strict=True):
        role, unread = mark if isinstance(mark, tuple) else (mark, "")
        found.append(
            TensorRecord(
                name,
                outside.dtype,
                outside.shape,
                outside.stride,
                outside.device,
                role,
                is_dense=outside.is_dense,
                unread=outside.unread or unread,
            )
        )
    return tuple(found)
