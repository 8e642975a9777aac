"""What a call would have given if its kernel had taken an argument for another value, or had read an input before it
was there: explanations of wrong results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from torchferry.accuracy.model import Value
from torchferry.accuracy.replay.arguments import CannotExecuteError
from torchferry.accuracy.replay.execution import execute_doubled
from torchferry.accuracy.replay.operators import base_name, find_overload
from torchferry.accuracy.replay.references import Reference, attempt
from torchferry.text import Text

_FACTORS = (
    0.0,
    1e-3,
    1e-2,
    0.1,
    10.0,
    100.0,
    1e3,
)  # of an epsilon: where it is forgotten, or another one built in
_EPSILONS = ("eps", "epsilon")
_WORDS = {"approximate": ("none", "tanh")}
_FLAGS = ("align_corners", "count_include_pad", "ceil_mode", "is_causal", "causal")
_CORRECTION = "correction"
_BATCH_NORMS = ("aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::cudnn_batch_norm")

_AS_IF = Text("it is as if {name} were {value}, not {given}", "结果如同 {name} 为 {value}，而不是 {given}")
_NOT_THERE = Text(
    "it is as if {name} had been 0 from {first} of its first dimension on: not there yet when the kernel read it",
    "结果如同 {name} 自第一维的 {first} 起为 0：内核读取时尚未就绪",
)
_FROM_N = Text("it is as if the variance were divided by n, not by n - 1", "结果如同方差除以 n，而不是 n - 1")


def misreadings(reference: Reference, output: int) -> Iterator[tuple[Text, torch.Tensor]]:
    """Explanations, with the result that each would have given in double precision."""
    call = reference.call
    given: dict[str, Value] = dict(call.arguments)
    for name, value, other in _others(call.operator, given):
        changed = replace(call, arguments=tuple({**given, name: other}.items()))
        try:
            found = attempt(lambda changed=changed: execute_doubled(changed, reference.inputs))[output]  # type: ignore[misc]
        except CannotExecuteError:
            continue
        right = reference.right[output]
        if found is not None and right is not None and found.shape == right.shape:
            yield _AS_IF.format(name=name, value=_shown(other), given=_shown(value)), found
    yield from _from_all(reference, output)


def unread_inputs(
    reference: Reference, output: int, wrong: torch.Tensor
) -> Iterator[tuple[Text, torch.Tensor]]:
    """The same for inputs whose last rows were not there, where the last rows of a result are wrong.

    A result that would be 0 there explains nothing: it may as well not have been written.
    """
    shape = reference.call.outputs[output].shape
    if not shape or wrong.numel() != math.prod(shape) or not bool(wrong.any()):
        return
    rows = wrong.reshape(shape[0], -1).any(1)
    first = int(rows.nonzero()[0])
    if not bool(rows[first:].all()):
        return
    for at, (record, tensor) in enumerate(zip(reference.call.inputs, reference.inputs, strict=True)):
        if not tensor.is_floating_point() or tensor.shape[:1] != shape[:1] or not bool(tensor[first:].any()):
            continue
        inputs = list(reference.inputs)
        inputs[at] = tensor.clone()
        inputs[at][first:] = 0
        try:
            found = attempt(lambda inputs=inputs: reference.execute(inputs))[output]  # type: ignore[misc]
        except CannotExecuteError:
            continue
        if (
            found is not None
            and tuple(found.shape) == shape
            and float((found[first:] != 0).double().mean()) > 0.5
        ):
            yield _NOT_THERE.format(name=record.name, first=first), found


def _others(operator: str, given: dict[str, Value]) -> Iterator[tuple[str, Any, Value]]:
    """Arguments that kernels are known to take wrongly: name, what it is, what it may have been taken for."""
    overload = find_overload(operator)
    for argument in overload._schema.arguments if overload is not None else ():
        name = argument.name
        value: Any = given.get(name, argument.default_value)
        if name in _EPSILONS and isinstance(value, float):
            yield from ((name, value, value * factor) for factor in _FACTORS)
        elif name in _WORDS:
            yield from ((name, value, other) for other in _WORDS[name] if other != value)
        elif name in _FLAGS and isinstance(value, bool):
            yield name, value, not value
        elif name == _CORRECTION and isinstance(value, (int, float)):
            yield from ((name, value, other) for other in (value - 1, value + 1) if other >= 0)


def _from_all(reference: Reference, output: int) -> Iterator[tuple[Text, torch.Tensor]]:
    """A batch norm's running variance, which PyTorch takes from n - 1."""
    call, right = reference.call, reference.right[output]
    if base_name(call.operator) not in _BATCH_NORMS or call.outputs[output].name != "output/running_var":
        return
    inputs = {record.name: tensor for record, tensor in zip(call.inputs, reference.inputs, strict=True)}
    source, old = inputs.get("input/input"), inputs.get("input/running_var")
    momentum = dict(call.arguments).get("momentum")
    if source is None or old is None or right is None or not isinstance(momentum, float):
        return
    count = math.prod(source.shape) / source.shape[1]
    kept = old * (1.0 - momentum)
    yield _FROM_N, kept + (right - kept) * (count - 1.0) / count


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
