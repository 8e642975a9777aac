"""The ways in which an operator is called: plainly, in place, into given outputs, and with its backward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .observations import Seen, look
from .places import Place, whole_memory

_SEED = 1234


@dataclass(frozen=True)
class Operator:
    """How an operator is called and what it promises."""

    name: str
    call: Callable[..., Any]
    in_place: Callable[..., Any] | None = None
    takes_out: bool = False
    is_differentiable: bool = False
    is_differentiable_in_place: bool = False
    has_values: bool = True  # False: it returns memory that nobody has written to


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    input: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None
    broadcasts_input: bool = False  # the result is larger than the input, so there is no in-place form
    prepare_gradient: Callable[[Any], Any] = lambda output: output
    host_arguments: frozenset[str] = frozenset()  # "args": stay on the CPU on every device


@dataclass(frozen=True)
class _Arguments:
    """A sample that was brought to a place."""

    input: Any
    args: Any
    kwargs: Any
    host_arguments: frozenset[str] = frozenset()

    def on_place(self) -> dict[str, Any]:
        """Those that were brought to the place, by name."""
        names = ("input", "args", "kwargs")
        return {name: getattr(self, name) for name in names if name not in self.host_arguments}


@dataclass(frozen=True)
class Check:
    """One way to call an operator; `run` brings the sample to a place, calls, and looks."""

    name: str
    applies: Callable[[Operator, Sample], bool]
    run: Callable[[Operator, Sample, Place], Seen]


def _bring(sample: Sample, place: Place, with_grad: bool = False) -> _Arguments:
    host = Place(torch.device("cpu"))
    tree = {"input": sample.input, "args": sample.args, "kwargs": sample.kwargs or {}}
    moved = {name: part for name, part in tree.items() if name not in sample.host_arguments}
    kept = {name: part for name, part in tree.items() if name in sample.host_arguments}
    everything = place.bring(moved, with_grad) | host.bring(kept, with_grad)
    return _Arguments(**everything, host_arguments=sample.host_arguments)


def _call(function: Callable[..., Any], arguments: _Arguments, **more: Any) -> Any:
    """Call with the random numbers of every device at the same beginning."""
    torch.manual_seed(_SEED)
    return function(arguments.input, *arguments.args, **arguments.kwargs, **more)


def _forward(operator: Operator, sample: Sample, place: Place) -> Seen:
    arguments = _bring(sample, place)
    output = _call(operator.call, arguments)
    return look(place, operator.has_values, {**arguments.on_place(), "output": output})


def _in_place(operator: Operator, sample: Sample, place: Place) -> Seen:
    assert operator.in_place is not None
    arguments = _bring(sample, place)
    returned = _call(operator.in_place, arguments)
    return look(place, operator.has_values, {**arguments.on_place(), "output": returned})


def _exact(like: torch.Tensor) -> torch.Tensor:
    """The same shape and strides; memory between the elements is written, too, so that it can be compared."""
    reach = 1 + sum((size - 1) * stride for size, stride in zip(like.size(), like.stride(), strict=True))
    memory = torch.ones(max(reach, 0), dtype=like.dtype, device=like.device)
    return memory.as_strided(like.size(), like.stride())


def _too_large(like: torch.Tensor) -> torch.Tensor:
    return torch.ones((2, *like.shape), dtype=like.dtype, device=like.device)


def _with_gaps(like: torch.Tensor) -> torch.Tensor:
    return torch.ones((*like.shape, 2), dtype=like.dtype, device=like.device)[..., 0]


def _into(make: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Operator, Sample, Place], Seen]:
    """A check that calls with `out=`, where outputs are made from those of a plain call."""

    def run(operator: Operator, sample: Sample, place: Place) -> Seen:
        with torch.no_grad():
            like = _call(operator.call, _bring(sample, place))
            is_one = isinstance(like, torch.Tensor)
            given: Any = make(like) if is_one else tuple(make(tensor) for tensor in like)
            sizes = [tensor.untyped_storage().nbytes() for tensor in pytree.tree_leaves(given)]
            arguments = _bring(sample, place)
            returned = _call(operator.call, arguments, out=given)
            kept = [
                whole_memory(tensor)
                for tensor, size in zip(pytree.tree_leaves(given), sizes, strict=True)
                if tensor.untyped_storage().nbytes() == size
            ]
            seen = {**arguments.on_place(), "out": given, "output": returned, "memory of out": kept}
            return look(place, operator.has_values, seen)

    return run


def _backward(operator: Operator, sample: Sample, place: Place) -> Seen:
    arguments = _bring(sample, place, with_grad=True)
    output = _call(operator.call, arguments)
    gradients = _gradients(sample.prepare_gradient(output), arguments)
    return look(place, operator.has_values, {"output": output, **gradients})


def _in_place_backward(operator: Operator, sample: Sample, place: Place) -> Seen:
    assert operator.in_place is not None
    arguments = _bring(sample, place, with_grad=True)
    copies = _Arguments(arguments.input.clone(), arguments.args, arguments.kwargs)
    output = _call(operator.in_place, copies)
    gradients = _gradients(sample.prepare_gradient(output), arguments)
    return look(place, operator.has_values, {"output": output, **gradients})


def _gradients(output: Any, arguments: _Arguments) -> dict[str, torch.Tensor | None]:
    """The gradient of every argument that asks for one, for fixed random gradients of the outputs."""
    outputs = [leaf for leaf in pytree.tree_leaves(output) if _wants_gradient(leaf)]
    inputs = {
        f"gradient of {name}{pytree.keystr(path)}": leaf
        for name, part in arguments.on_place().items()
        for path, leaf in pytree.tree_flatten_with_path(part)[0]
        if _wants_gradient(leaf)
    }
    if not outputs or not inputs:
        return {}
    cotangents = [_cotangent(tensor, seed) for seed, tensor in enumerate(outputs)]
    torch.manual_seed(_SEED)
    gradients = torch.autograd.grad(outputs, list(inputs.values()), cotangents, allow_unused=True)
    return dict(zip(inputs, gradients, strict=True))


def _wants_gradient(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def _cotangent(output: torch.Tensor, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    wide = torch.complex64 if output.is_complex() else torch.float32
    random = torch.randn(output.shape, dtype=wide, generator=generator)
    return random.to(output.dtype).to(output.device)


def _has_in_place(operator: Operator, sample: Sample) -> bool:
    return operator.in_place is not None and not sample.broadcasts_input


def _takes_out(operator: Operator, sample: Sample) -> bool:
    return operator.takes_out


CHECKS = (
    Check("forward", lambda operator, sample: True, _forward),
    Check("in-place", _has_in_place, _in_place),
    Check("out=", _takes_out, _into(_exact)),
    Check("out= of another size", _takes_out, _into(_too_large)),
    Check("out= not contiguous", _takes_out, _into(_with_gaps)),
    Check("backward", lambda operator, sample: operator.is_differentiable, _backward),
    Check(
        "in-place backward",
        lambda operator, sample: (
            _has_in_place(operator, sample)
            and operator.is_differentiable_in_place
            and _wants_gradient(sample.input)
        ),
        _in_place_backward,
    ),
)
