"""Which operator of a record makes what a function or a module of a dump of APIs answers. No torch.

A module answers what the last operator inside of it has made, and so do the functions in it: several calls of a dump
may stand for one operator, and most operators stand for none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torchferry.accuracy.compare.matching import (
    EQUIVALENT,
    EXTRA,
    GROUP,
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
        without = EXTRA if is_plumbing(apis.kind(at).operator) else GROUP
        place, how = found.get(at, (None, without))
        return CallMatch(at, place, how) if apis_are_mine else CallMatch(place, at, how)

    return Matches(map(match, range(len(apis))))


def _matched(apis: CallSequence, operators: CallSequence) -> dict[int, tuple[int, str]]:
    """By position in the dump: position in the record, and how it was found."""
    functions = [at for at in range(len(apis)) if not is_module_call(apis.kind(at).operator)]
    if functions and not any(apis.kind(at).module for at in functions):  # dumps of level L1 tell no modules
        operators = operators.without_modules()
    matches = Matching(apis.part(functions), operators, of_apis=True).matches()
    found = {
        functions[each.mine]: (each.golden, EQUIVALENT)
        for each in matches
        if each.mine is not None and each.golden is not None
    }
    steps = _numbered_steps(apis, operators)
    regions = _Regions(operators, steps[1])
    found.update(_between(functions, found, apis, regions, steps[0]))
    for group in _alike(apis, found, steps[0]):
        found.update(regions.last_of_each(group))
    return found


def _between(
    functions: Sequence[int],
    found: Mapping[int, tuple[int, str]],
    apis: CallSequence,
    regions: _Regions,
    steps: Mapping[int, int],
) -> Iterator[tuple[int, tuple[int, str]]]:
    """Functions without a counterpart: of the operators after that of the function before, and before that of the next,
    the last whose result has the shape."""
    following: list[int] = []
    end = regions.count
    for at in reversed(functions):
        following.append(end)
        end = found[at][0] if at in found else end
    start = -1
    for at, stop in zip(functions, reversed(following), strict=True):
        if at in found:
            start = found[at][0]
            continue
        kind = apis.kind(at)
        if is_plumbing(kind.operator):
            continue
        region = steps[apis.steps[at]], kind.phase, kind.module
        places = [each for each in regions.places(region, kind.result) if start < each < stop]
        # of a function, the dump has the gradient of whatever operator came first in the backward pass
        if places and (len(places) == 1 or kind.phase != BACKWARD):
            start = places[-1]
            yield at, (start, GROUP)


def _numbered_steps(*sides: CallSequence) -> list[dict[int, int]]:
    """The first step of one side is that of the other, whatever its number, where they have none in common."""
    steps = [sorted(set(side.steps)) for side in sides]
    if set(steps[0]) & set(steps[1]):
        return [{step: step for step in each} for each in steps]
    return [{step: at for at, step in enumerate(each)} for each in steps]


@dataclass(frozen=True)
class _Alike:
    """Calls of one module that answer tensors of one shape; in their order."""

    region: _Region
    result: Shape
    positions: tuple[int, ...]


def _alike(apis: CallSequence, found: dict[int, tuple[int, str]], steps: dict[int, int]) -> Iterator[_Alike]:
    groups: dict[tuple[str, _Region, Shape], list[int]] = defaultdict(list)
    for at in range(len(apis)):
        kind = apis.kind(at)
        if at not in found and is_module_call(kind.operator):
            region = steps[apis.steps[at]], kind.phase, kind.module
            groups[kind.operator, region, kind.result].append(at)
    for (_, region, result), each in groups.items():
        yield _Alike(region, result, tuple(each))


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

    @property
    def count(self) -> int:
        """All operators."""
        return len(self._operators)

    def places(self, region: _Region, result: Shape) -> list[int]:
        """Operators there whose result has this shape; outside of modules, only what stands there itself."""
        found = self._by_place.get((region, result), [])
        return found if region[2] else [at for at in found if not self._operators.kind(at).module]

    def last_of_each(self, group: _Alike) -> Iterator[tuple[int, tuple[int, str]]]:
        """Of as many equal parts of a region as there are calls, the last operator."""
        places = self.places(group.region, group.result)
        size, rest = divmod(len(places), len(group.positions))
        if size and not rest:
            for number, at in enumerate(group.positions, 1):
                yield at, (places[number * size - 1], GROUP)


def _around(module: str) -> Iterator[str]:
    """body.0.conv, body.0, body, and what is outside of all."""
    while module:
        yield module
        module = module.rpartition(".")[0]
    yield ""
