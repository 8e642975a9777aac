"""Which operator of a record makes what a function or a module of a dump of APIs answers. No torch.

A module answers what the last operator inside of it has made, and so do the functions in it: several calls of a dump
may stand for one operator, and most operators stand for none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.accuracy.compare.matching import (
    EQUIVALENT,
    GROUP,
    NOTHING,
    CallMatch,
    CallSequence,
    Matches,
    Matching,
)
from torchferry.accuracy.file.api_names import BACKWARD, is_module_call
from torchferry.operators.names import is_plumbing

Shape = tuple[int, ...]
_Region = tuple[int, str, str]  # step, phase, module


def match_apis(apis: CallSequence, operators: CallSequence, *, apis_are_mine: bool) -> Matches:
    """The calls of a dump in their order, each with the operator that makes the same; golden's or mine."""
    found = _matched(apis, operators)

    def match(at: int) -> CallMatch:
        place, how = found.get(at, (None, NOTHING))
        return CallMatch(at, place, how or GROUP) if apis_are_mine else CallMatch(place, at, how or GROUP)

    return Matches(map(match, range(len(apis))))


def _matched(apis: CallSequence, operators: CallSequence) -> dict[int, tuple[int, str]]:
    """By position in the dump: position in the record, and how it was found."""
    functions = [at for at in range(len(apis)) if not is_module_call(apis.kind(at).operator)]
    matches = Matching(apis.part(functions), operators, of_apis=True).matches()
    found = {
        functions[each.mine]: (each.golden, EQUIVALENT)
        for each in matches
        if each.mine is not None and each.golden is not None
    }
    steps = _numbered_steps(apis, operators)
    regions = _Regions(operators, steps[1])
    for group in _alike(apis, found, steps[0]):
        found.update(regions.last_of_each(group))
    return found


def _numbered_steps(*sides: CallSequence) -> list[dict[int, int]]:
    """The first step of one side is that of the other, whatever its number, where they have none in common."""
    steps = [sorted(set(side.steps)) for side in sides]
    if set(steps[0]) & set(steps[1]):
        return [{step: step for step in each} for each in steps]
    return [{step: at for at, step in enumerate(each)} for each in steps]


@dataclass(frozen=True)
class _Alike:
    """Calls of one module, or of functions in one, that answer tensors of one shape; in their order."""

    region: _Region
    result: Shape
    positions: tuple[int, ...]
    is_of_modules: bool


def _alike(apis: CallSequence, found: dict[int, tuple[int, str]], steps: dict[int, int]) -> Iterator[_Alike]:
    groups: dict[tuple[str, _Region, Shape], list[int]] = defaultdict(list)
    for at in range(len(apis)):
        kind = apis.kind(at)
        if at not in found:
            region = steps[apis.steps[at]], kind.phase, kind.module
            groups[kind.operator, region, kind.result].append(at)
    for (operator, region, result), each in groups.items():
        yield _Alike(region, result, tuple(each), is_module_call(operator))


class _Regions:
    """The operators of each module, those of the modules in it included."""

    def __init__(self, operators: CallSequence, steps: dict[int, int]) -> None:
        self._operators, self._steps = operators, steps
        self._by_place: dict[tuple[_Region, Shape], list[int]] = defaultdict(list)
        for at in range(len(operators)):
            kind = operators.kind(at)
            if is_plumbing(kind.operator):
                continue
            step = steps[operators.steps[at]]
            for module in _around(kind.module):
                self._by_place[(step, kind.phase, module), kind.result].append(at)

    def last_of_each(self, group: _Alike) -> Iterator[tuple[int, tuple[int, str]]]:
        """Of as many equal parts of a region as there are calls, the last operator."""
        places = self._by_place.get((group.region, group.result), [])
        if not group.region[2]:  # outside of modules, only what stands there itself
            places = [at for at in places if not self._operators.kind(at).module]
        size, rest = divmod(len(places), len(group.positions))
        # of a function, the dump has the gradient of whatever operator came first in the backward pass
        is_clear = size == 1 or group.is_of_modules or group.region[1] != BACKWARD
        if size and not rest and is_clear:
            for number, at in enumerate(group.positions, 1):
                yield at, (places[number * size - 1], GROUP)


def _around(module: str) -> Iterator[str]:
    """body.0.conv, body.0, body, and what is outside of all."""
    while module:
        yield module
        module = module.rpartition(".")[0]
    yield ""
