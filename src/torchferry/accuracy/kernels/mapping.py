"""From operators to the kernels that they launched, and from recorded calls to those of a trace. Imports no torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchferry.accuracy.model import Call
from torchferry.ops.trace.reader import Launch

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class KernelUse:
    """Calls of one operator, on tensors of one sort, that launched the same kernels."""

    operator: str
    shapes: Shapes  # of its tensors; () where the trace has none
    dtypes: tuple[str, ...]
    kernels: tuple[str, ...]  # in the order of their start
    calls: int
    nanoseconds: int  # of the device, in all
    module: str  # of the first call
    place: str


@dataclass(frozen=True)
class Launched:
    """What a trace says of a recorded call."""

    kernels: tuple[str, ...]
    is_same_call: (
        bool  # the trace has as many such calls in a step as the record; otherwise one of the same sort
    )


def kernel_uses(launches: Iterable[Launch]) -> list[KernelUse]:
    """Each operator with its kernels, those that took longest first; operators without kernels are left out."""
    folded: dict[tuple[object, ...], list[Launch]] = defaultdict(list)
    for launch in launches:
        if launch.kernels:
            key = (launch.signature.operator, _shapes(launch), tuple(_dtypes(launch)), _names(launch))
            folded[key].append(launch)
    uses = [_folded(calls) for calls in folded.values()]
    return sorted(uses, key=lambda use: (-use.nanoseconds, use.operator, use.shapes))


def _folded(calls: list[Launch]) -> KernelUse:
    first = calls[0]
    return KernelUse(
        first.signature.operator,
        _shapes(first),
        tuple(_dtypes(first)),
        _names(first),
        len(calls),
        sum(nanoseconds for call in calls for _, nanoseconds in call.kernels),
        first.site.module,
        first.site.place,
    )


def kernels_of_calls(calls: Iterable[Call], launches: Iterable[Launch]) -> Mapping[int, Launched]:
    """The kernels of recorded calls, by their numbers: the n-th call of an operator on tensors of some shapes in a
    step is the n-th of the trace. A trace of several steps repeats itself: its first round counts."""
    known: dict[tuple[str, Shapes], list[Launch]] = defaultdict(list)
    for launch in launches:
        for shapes in dict.fromkeys((_shapes(launch), ())):
            known[_plain(launch.signature.operator), shapes].append(launch)
    recorded: dict[tuple[str, Shapes, int], list[Call]] = defaultdict(list)
    for call in calls:
        shapes = tuple(tensor.shape for tensor in call.inputs)
        recorded[_plain(call.operator), shapes, call.step].append(call)
    found: dict[int, Launched] = {}
    for (operator, shapes, _), same in recorded.items():
        candidates = known.get((operator, shapes)) or _without_shapes(known.get((operator, ()), []))
        for position, call in enumerate(same):
            if candidates:
                is_same = len(candidates) % len(same) == 0
                found[call.number] = Launched(_names(candidates[position % len(candidates)]), is_same)
    return found


def _without_shapes(launches: list[Launch]) -> list[Launch]:
    return [launch for launch in launches if not _shapes(launch)]


def _plain(operator: str) -> str:
    """Older traces do not tell overloads: aten::add for aten::add.Tensor."""
    return operator.partition(".")[0]


def _names(launch: Launch) -> tuple[str, ...]:
    return tuple(name for name, _ in launch.kernels)


def _shapes(launch: Launch) -> Shapes:
    return tuple(spec.shape for spec in launch.signature.inputs)


def _dtypes(launch: Launch) -> list[str]:
    return list(dict.fromkeys(spec.dtype for spec in launch.signature.inputs))
