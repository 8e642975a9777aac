"""The calls of several processes that do the same job, whatever their shapes. No torch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from torchferry.accuracy.compare.matching import Alignment
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.model import Call
from torchferry.operators.names import base_name, family, is_plumbing

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
_WRAPPERS = re.compile(r"(?:^|(?<=\.))(?:_fsdp_wrapped_module|_checkpoint_wrapped_module|_orig_mod|module)(?:\.|$)")
COMMUNICATION = ("c10d::", "_c10d_functional::", "c10d_functional::", "fsdp::")


@dataclass(frozen=True)
class CallGroup:
    """A call of each process."""

    many: tuple[Call, ...]
    few: tuple[Call, ...]


def module_path(call: Call) -> str:
    """The module without what wrappers put into its path; empty for the model itself."""
    path = "" if call.module == call.model else _WRAPPERS.sub("", call.module)
    return path.removesuffix(".")


class ProcessCalls:
    """The calls of one process, of each step: those that compute, and those of its optimizer."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._steps: dict[int, list[tuple[int, Hashable]]] = {}
        self._optimizer: dict[int, list[tuple[int, Hashable]]] = {}
        self._inside: Counter[int] = Counter()
        for at in range(len(record.calls)):
            call = record.calls[at]
            if call.phase == OPTIMIZER:
                if _updates(call):
                    self._optimizer.setdefault(call.step, []).append((at, base_name(call.operator)))
            elif _computes(call):
                path = module_path(call)
                key = (call.phase, path, family(call.operator))
                self._steps.setdefault(call.step, []).append((at, key))
                self._inside[call.step] += bool(path)

    @property
    def steps(self) -> list[int]:
        """The steps that the record has."""
        return sorted({*self._steps, *self._optimizer})

    def inside(self, step: int) -> int:
        """How many calls of a step are made inside of modules."""
        return self._inside[step]

    def calls(self, step: int, *, of_optimizer: bool) -> list[tuple[int, Hashable]]:
        """Positions and keys."""
        return (self._optimizer if of_optimizer else self._steps).get(step, [])


def lined_up(
    many: Sequence[ProcessCalls], few: Sequence[ProcessCalls], step: int, *, of_optimizer: bool = False
) -> Iterator[CallGroup]:
    """The calls that every process makes, in the order of the first of the few."""
    sides = [*few, *many]
    sequences = [each.calls(step, of_optimizer=of_optimizer) for each in sides]
    keys = [[key for _, key in sequence] for sequence in sequences]
    partners = [dict(Alignment(keys[0], each).pairs) for each in keys[1:]]
    for at in range(len(keys[0])):
        places = [at, *(partner.get(at) for partner in partners)]
        if None not in places:
            calls = tuple(
                side.record.calls[sequence[place][0]]
                for side, sequence, place in zip(sides, sequences, places, strict=True)
                if place is not None
            )
            yield CallGroup(calls[len(few) :], calls[: len(few)])


def _computes(call: Call) -> bool:
    return bool(call.outputs) and not call.operator.startswith(COMMUNICATION) and not is_plumbing(call.operator) and any(
        each.offset is not None for each in call.outputs
    )


def _updates(call: Call) -> bool:
    return _computes(call) and len(call.arguments) > 1
