"""The calls of several processes that do the same job, whatever their shapes. No torch."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from torchferry.accuracy.compare.matching import Alignment
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.model import Call
from torchferry.operators.names import base_name, family, is_plumbing

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
_WRAPPERS = re.compile(
    r"(?:^|(?<=\.))(?:_fsdp_wrapped_module|_checkpoint_wrapped_module|_orig_mod|module)(?:\.|$)"
)
COMMUNICATION = ("c10d::", "_c10d_functional::", "c10d_functional::", "fsdp::")
_ACCUMULATING = "AccumulateGrad"  # where wrappers reduce gradients


@dataclass(frozen=True)
class AlignedCalls:
    """A call of each process."""

    many: tuple[Call, ...]
    few: tuple[Call, ...]


def module_path(call: Call) -> str:
    """The module without what wrappers put into its path; empty for the model itself."""
    path = "" if call.module == call.model else _WRAPPERS.sub("", call.module)
    return path.removesuffix(".")


Keyed = tuple[int, Hashable]  # the position of a call, and what it does where


@dataclass(frozen=True)
class PassCalls:
    """The calls of one process in a step, or in one of the passes whose gradients a step accumulates."""

    record: Record
    rank: int
    calls: Sequence[Keyed]

    @property
    def inside(self) -> int:
        """How many are made inside of modules."""
        return sum(isinstance(key, tuple) and bool(key[1]) for _, key in self.calls)


class ProcessCalls:
    """The calls of one process, of each step: those that compute, and those of its optimizer."""

    def __init__(self, record: Record, rank: int) -> None:
        self.record, self.rank = record, rank
        self._passes: dict[int, list[list[Keyed]]] = {}
        self._optimizer: dict[int, list[Keyed]] = {}
        self.origins: dict[int, int] = {}  # content -> what it is a copy of, or a cast
        phase = ""
        for at in range(len(record.calls)):
            call = record.calls[at]
            if call.phase == OPTIMIZER:
                if _updates(call):
                    self._optimizer.setdefault(call.step, []).append((at, base_name(call.operator)))
            elif is_plumbing(call.operator):
                given = next((each.content for each in call.inputs[-1:] if each.content), 0)
                made = (each.content for each in call.outputs if each.content not in (0, given))
                self.origins.update((content, given) for content in made if given)
            elif _computes(call):
                passes = self._passes.setdefault(call.step, [[]])
                if phase == BACKWARD and call.phase == FORWARD and passes[-1]:
                    passes.append([])
                phase = call.phase
                passes[-1].append((at, (call.phase, module_path(call), family(call.operator))))

    @property
    def steps(self) -> list[int]:
        """The steps that the record has."""
        return sorted({*self._passes, *self._optimizer})

    def optimizer(self, step: int) -> PassCalls:
        """What the optimizer calls in a step."""
        return PassCalls(self.record, self.rank, self._optimizer.get(step, []))

    def passes(self, step: int) -> list[PassCalls]:
        """The passes of a step that do the same to other samples; one, where they are no such."""
        found = self._passes.get(step, [[]])
        first, *others = [[key for _, key in each if _is_forward(key)] for each in found]
        if any(each != first for each in others):
            found = [[call for each in found for call in each]]
        return [PassCalls(self.record, self.rank, each) for each in found]


def lined_up(many: Sequence[PassCalls], few: Sequence[PassCalls]) -> Iterator[AlignedCalls]:
    """The calls that all make, in the order of the first of the few."""
    sides = [*few, *many]
    keys = [[key for _, key in each.calls] for each in sides]
    partners = [dict(Alignment(keys[0], each).pairs) for each in keys[1:]]
    for at in range(len(keys[0])):
        places = [at, *(partner.get(at) for partner in partners)]
        if None not in places:
            calls = tuple(
                side.record.calls[side.calls[place][0]]
                for side, place in zip(sides, places, strict=True)
                if place is not None
            )
            yield AlignedCalls(calls[len(few) :], calls[: len(few)])


def _is_forward(key: Hashable) -> bool:
    return isinstance(key, tuple) and key[0] == FORWARD and bool(key[1])


def _computes(call: Call) -> bool:
    return (
        bool(call.outputs)
        and call.node != _ACCUMULATING
        and not call.operator.startswith(COMMUNICATION)
        and not is_plumbing(call.operator)
        and any(each.offset is not None for each in call.outputs)
    )


def _updates(call: Call) -> bool:
    return _computes(call) and len(call.arguments) > 1
