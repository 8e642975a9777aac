"""One call that is checked: its tensors by their names, as they were before it and as they are after it.

Inputs are kept by reference until the call is judged. What the call overwrites is gone then, so it is copied before,
up to a limit; what another call overwrites while this one waits to be judged is replaced by that call's copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from torchferry.accuracy.model import INPUT, OUTPUT
from torchferry.accuracy.overflow.model import Figures, Seen
from torchferry.accuracy.record.plans import Plan
from torchferry.accuracy.record.tensors import version_of
from torchferry.observe.modes import unobserved
from torchferry.observe.tensors import why_unreadable
from torchferry.observe.where import Site

MOST_COPIED = 1 << 30  # bytes; what a call overwrites beyond this is not kept
_NOWHERE = Site("")


class CheckedCall:
    """A call, from before it is made until it is judged."""

    __slots__ = (
        "_versions",
        "answered",
        "arguments",
        "copies",
        "inputs",
        "number",
        "outputs",
        "plan",
        "site",
        "step",
        "unsaved",
    )

    def __init__(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.plan = plan
        self.arguments = [*zip(plan.names, args, strict=False), *kwargs.items()]
        self.inputs: list[tuple[str, torch.Tensor]] = []  # where a tensor is overwritten, its copy
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []  # of what it overwrites
        self.outputs: list[tuple[str, torch.Tensor]] = []
        self._versions: list[int] = []  # of the inputs, to tell whether they were overwritten since
        self.unsaved: set[str] = set()  # names of inputs that are not as they were before the call
        self.number = self.step = self.answered = 0
        self.site = _NOWHERE

    def take_inputs(self) -> None:
        """Before the call is made: what it overwrites is copied, within limits."""
        plan = self.plan
        copied = 0
        for argument, value in self.arguments:
            position = plan.positions[argument]
            for name, tensor in _named(INPUT, argument, value):
                if position in plan.lost:
                    self.unsaved.add(name)
                elif position in plan.written and is_number(tensor) and not why_unreadable(tensor):
                    copied += tensor.nbytes
                    if copied <= MOST_COPIED:
                        self.copies.append((tensor, _copy(tensor)))
                        tensor = self.copies[-1][1]
                    else:
                        self.unsaved.add(name)
                self.inputs.append((name, tensor))
                self._versions.append(version_of(tensor))

    def take_outputs(self, result: Any) -> None:
        """After it: results, then arguments that it wrote to; those keep their names where it answers with them."""
        written = {id(tensor): name for name, tensor in self.written_tensors()} if self.plan.written else {}
        results = result if isinstance(result, (list, tuple)) else (result,)
        for place, value in enumerate(results):
            for name, tensor in _named(OUTPUT, f"output_{place}", value):
                if is_number(tensor):
                    self.outputs.append((written.pop(id(tensor), name), tensor))
        self.answered = len(self.outputs)
        if written:
            for name, tensor in self.written_tensors():
                if id(tensor) in written and is_number(tensor):
                    self.outputs.append((name, tensor))

    def written_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The arguments that it writes to, themselves."""
        for argument, value in self.arguments:
            if self.plan.positions[argument] in self.plan.written:
                yield from _named(OUTPUT, argument, value)

    def numbers(self) -> Iterator[float]:
        """The scalars that it was given, those of lists included."""
        return _numbers(value for _, value in self.arguments)

    def read_inputs(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The inputs that the operator has read and that are still as they were."""
        for place, (name, tensor) in enumerate(self.inputs):
            if name not in self.unsaved and version_of(tensor) == self._versions[place]:
                yield name, tensor

    def keep(self, original: torch.Tensor, copy: torch.Tensor) -> None:
        """A tensor is about to be overwritten by another call: go on with a copy of it."""
        for place, (name, tensor) in enumerate(self.inputs):
            if tensor is original and version_of(tensor) == self._versions[place]:
                self.inputs[place] = (name, copy)
                self._versions[place] = version_of(copy)
        for place, (name, tensor) in enumerate(self.outputs):
            if tensor is original:
                self.outputs[place] = (name, copy)

    def nbytes(self) -> int:
        """What it keeps from being freed, at most."""
        return sum(tensor.nbytes for _, tensor in (*self.inputs, *self.outputs) if not why_unreadable(tensor))

    def seen(self, inputs: Sequence[Figures], outputs: Sequence[Figures]) -> Seen:
        """The same without its tensors."""
        site = self.site
        return Seen(
            self.number, self.plan.operator, self.step, site.phase, site.model, site.module, site.place, site.node,
            tuple(inputs), tuple(outputs),
        )  # fmt: skip


def is_checked(plan: Plan) -> bool:
    """Whether the operator computes something, and its results are there when it returns."""
    return not (plan.is_skipped or plan.is_view or plan.uninitialised or plan.communicates)


def is_number(tensor: torch.Tensor) -> bool:
    """Whether it could hold what is not finite."""
    return tensor.is_floating_point() or tensor.is_complex()


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    with unobserved():
        return tensor.detach().clone()


def _named(side: str, name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield f"{side}/{name}", value
    elif isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            yield from _named(f"{side}/{name}", f"{name}_{place}", each)


def _numbers(values: Iterable[Any]) -> Iterator[float]:
    for value in values:
        if isinstance(value, (float, int)):
            yield float(value)
        elif isinstance(value, complex):
            yield from (value.real, value.imag)
        elif isinstance(value, (list, tuple)):
            yield from _numbers(value)
