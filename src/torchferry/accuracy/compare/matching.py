"""Which calls of two records do the same job: in order, under other names, elsewhere, or in several pieces. No torch."""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

from torchferry.accuracy.compare.alignment import Alignment, rising
from torchferry.accuracy.compare.names import family, is_plumbing, likeness
from torchferry.accuracy.model import Call

SAME, EQUIVALENT, SIMILAR, MOVED = "same", "equivalent", "similar", "moved"
GROUP = "group"  # one side does in several calls what the other does in one
EXTRA = "extra"  # a copy, cast or view that one side makes and the other does not
NOTHING = ""  # no call of the other side does this
_ALIKE = 0.6  # of the words of two operators' names
_SAME_NUMBERS = 0.95  # of the calls must have the number of an equal one, for the numbers to be believed
_SMALL = 64  # calls of a gap in which names are held against each other
OPTIMIZER = "optimizer"
_NONE = -1  # in the place of a position
Place = tuple[int, str, str]  # step, phase, module


@dataclass(frozen=True, slots=True)
class Match:
    """Positions of two calls, or of one that has none on the other side."""

    mine: int | None
    golden: int | None
    how: str = NOTHING


class Kind(NamedTuple):
    """What of a call decides which it belongs to, besides its step and number: the same in every step."""

    operator: str
    phase: str
    module: str  # without what wrappers of whole models put before the path
    line: tuple[str, str]  # place and autograd node
    shapes: tuple[tuple[int, ...], ...]  # of the inputs
    result: tuple[int, ...]  # shape of the first output


class Sites:
    """All calls of a record, in order: so much smaller than the calls that those of a long run fit into memory."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self.numbers, self.steps, self._kinds = array("q"), array("q"), array("l")
        known: dict[Kind, int] = {}
        for call in calls:
            kind = Kind(
                call.operator,
                call.phase,
                _unwrapped(call.module),
                (call.place, call.node),
                tuple(tensor.shape for tensor in call.inputs),
                call.outputs[0].shape if call.outputs else (),
            )
            self.numbers.append(call.number)
            self.steps.append(call.step)
            self._kinds.append(known.setdefault(kind, len(known)))
        self._known = list(known)

    def __len__(self) -> int:
        return len(self._kinds)

    def kind(self, at: int) -> Kind:
        """Of the call at this position."""
        return self._known[self._kinds[at]]

    def keyed(self, key: Callable[[Kind], int | None]) -> Callable[[int], int | None]:
        """The key of the call at a position; found once for each kind."""
        keys, kinds = [key(kind) for kind in self._known], self._kinds
        return lambda at: keys[kinds[at]]


class Matches(Sequence[Match]):
    """Many of them, made when they are asked for."""

    def __init__(self, matches: Iterable[Match]) -> None:
        self._mine, self._golden, self._how = array("q"), array("q"), array("b")
        self._names: list[str] = []
        for match in matches:
            self._mine.append(_NONE if match.mine is None else match.mine)
            self._golden.append(_NONE if match.golden is None else match.golden)
            if match.how not in self._names:
                self._names.append(match.how)
            self._how.append(self._names.index(match.how))

    def __len__(self) -> int:
        return len(self._how)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> list[Match]: ...
    def __getitem__(self, index: int | slice) -> Match | list[Match]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        mine, golden = self._mine[index], self._golden[index]
        return Match(
            None if mine == _NONE else mine,
            None if golden == _NONE else golden,
            self._names[self._how[index]],
        )


def _unwrapped(module: str) -> str:
    while module == "module" or module.startswith("module."):
        module = module[len("module.") :]
    return module


def match_sites(mine: Sites, golden: Sites, *, is_replay: bool = False) -> Matches:
    """The calls that belong together, in the order of mine."""
    return Matching(mine, golden, by_number=is_replay and have_same_numbers(mine, golden)).matches()


def have_same_numbers(mine: Sites, golden: Sites) -> bool:
    """Whether equal numbers mean equal calls: one is a replay of the other, or of a part of it."""
    places = {number: at for at, number in enumerate(golden.numbers)}
    common = [(at, places[number]) for at, number in enumerate(mine.numbers) if number in places]
    same = sum(mine.kind(at).operator == golden.kind(other).operator for at, other in common)
    return bool(common) and same >= _SAME_NUMBERS * len(common)


class Matching:
    """Two sequences of calls, held against each other; `comparisons` counts the work."""

    def __init__(self, mine: Sites, golden: Sites, *, by_number: bool = False) -> None:
        self._mine, self._golden = mine, golden
        self._steps = _common_steps(mine, golden)
        self._partners = array("q", [_NONE]) * len(mine)  # of mine; rising but for those that are _NONE
        self._taken = bytearray(len(golden))
        self._moved: dict[int, int] = {}
        self._similar: set[tuple[int, int]] = set()
        self.comparisons = 0
        if by_number:
            self._match_numbers()
        for key in (_exact, _plain, _equivalent, _by_family):
            self._match_in_order(key)
        self._match_similar()
        self._match_moved()

    def matches(self) -> Matches:
        """In the order of mine; calls of golden alone stand where they would have been."""
        return Matches(self._in_order_of_mine())

    def _in_order_of_mine(self) -> Iterator[Match]:
        both = self._places_of_pieces()

        def left_over(start: int, stop: int) -> Iterator[Match]:
            for at in range(start, stop):
                if not self._taken[at]:
                    yield Match(None, at, self._reason(self._golden, at, both))

        after = 0
        for at, other in enumerate(self._partners):
            if other != _NONE:
                yield from left_over(after, other)
                after = other + 1
                yield Match(at, other, self._how(at, other))
            elif at in self._moved:
                yield Match(at, self._moved[at], MOVED)
            else:
                yield Match(at, None, self._reason(self._mine, at, both))
        yield from left_over(after, len(self._golden))

    def _how(self, one: int, other: int) -> str:
        if self._mine.kind(one).operator == self._golden.kind(other).operator:
            return SAME
        return SIMILAR if (one, other) in self._similar else EQUIVALENT

    def _pair(self, pairs: Iterable[tuple[int, int]]) -> None:
        for one, other in pairs:
            self._partners[one] = other
            self._taken[other] = True

    def _match_numbers(self) -> None:
        places = {number: at for at, number in enumerate(self._golden.numbers)}
        self._pair(
            rising(
                [
                    (at, other)
                    for at, number in enumerate(self._mine.numbers)
                    if (other := places.get(number)) is not None
                    and family(self._golden.kind(other).operator) == family(self._mine.kind(at).operator)
                ]
            )
        )

    def _gaps(self) -> Iterator[tuple[range, range]]:
        """What lies between pairs, where both sides have something."""
        first = second = 0
        for one, other in enumerate((*self._partners, len(self._golden))):
            if other == _NONE:
                continue
            if one > first and other > second:
                yield range(first, one), range(second, other)
            first, second = one + 1, other + 1

    def _match_in_order(self, key: Callable[[Kind], Hashable | None]) -> None:
        numbers: dict[Hashable, int] = {}

        def number(kind: Kind) -> int | None:
            found = key(kind)
            return None if found is None else numbers.setdefault(found, len(numbers))

        ours, theirs = self._mine.keyed(number), self._golden.keyed(number)
        for mine, golden in list(self._gaps()):
            one = self._keyed(self._mine.steps, mine, ours, len(numbers))
            other = self._keyed(self._golden.steps, golden, theirs, len(numbers))
            alignment = Alignment(one[1], other[1])
            self.comparisons += alignment.comparisons
            self._pair((one[0][first], other[0][second]) for first, second in alignment.pairs)

    def _keyed(
        self, steps: array[int], positions: range, key: Callable[[int], int | None], count: int
    ) -> tuple[array[int], array[int]]:
        """The positions that have a key, and a number for each key and step."""
        found, keys = array("q"), array("q")
        for at in positions:
            number = key(at)
            if number is not None:
                found.append(at)
                keys.append(self._steps[steps[at]] * count + number)
        return found, keys

    def _match_similar(self) -> None:
        """In small gaps: operators of one module whose names are alike, as a vendor's own are to PyTorch's."""
        for mine, golden in self._gaps():
            if len(mine) * len(golden) > _SMALL * _SMALL:
                continue
            start = golden.start
            for one in mine:
                for other in range(start, golden.stop):
                    self.comparisons += 1
                    if self._is_similar(one, other):
                        self._similar.add((one, other))
                        start = other + 1
                        break
        self._pair(self._similar)

    def _is_similar(self, one: int, other: int) -> bool:
        mine, golden = self._mine.kind(one).operator, self._golden.kind(other).operator
        if is_plumbing(mine) or is_plumbing(golden):
            return False
        is_same_place = self._place(self._mine, one) == self._place(self._golden, other)
        return is_same_place and likeness(mine, golden) >= _ALIKE

    def _match_moved(self) -> None:
        """What is left of one operator in one place, in order, wherever it stands."""
        places: dict[Hashable, deque[int]] = defaultdict(deque)
        for at in range(len(self._golden)):
            kind = self._golden.kind(at)
            if not self._taken[at] and not is_plumbing(kind.operator):
                places[self._step(self._golden, at), _plain(kind)].append(at)
        for at, other in enumerate(self._partners):
            if other == _NONE and places:
                waiting = places.get((self._step(self._mine, at), _plain(self._mine.kind(at))))
                if waiting:
                    self._moved[at] = waiting.popleft()
                    self._taken[self._moved[at]] = True

    def _places_of_pieces(self) -> set[Place]:
        """Modules, and optimizer steps, in which both sides have calls left: they do one job in different pieces."""
        ours = (at for at, other in enumerate(self._partners) if other == _NONE and at not in self._moved)
        theirs = (at for at, is_taken in enumerate(self._taken) if not is_taken)
        here, there = (
            {self._place(sites, at) for at in left if not is_plumbing(sites.kind(at).operator)}
            for sites, left in ((self._mine, ours), (self._golden, theirs))
        )
        return {place for place in here & there if place[2] or place[1] == OPTIMIZER}

    def _reason(self, sites: Sites, at: int, both: set[Place]) -> str:
        if is_plumbing(sites.kind(at).operator):
            return EXTRA
        return GROUP if self._place(sites, at) in both else NOTHING

    def _step(self, sites: Sites, at: int) -> int:
        return self._steps[sites.steps[at]]

    def _place(self, sites: Sites, at: int) -> Place:
        kind = sites.kind(at)
        return self._step(sites, at), kind.phase, kind.module


# The keys by which the calls of a step are matched, from the strictest to the loosest; None: not by this one.


def _exact(kind: Kind) -> Hashable:
    return *_plain(kind), kind.line


def _plain(kind: Kind) -> tuple[Hashable, ...]:
    return kind.phase, kind.module, kind.operator, kind.shapes


def _equivalent(kind: Kind) -> Hashable | None:
    """An extra copy must not be taken for one that is made elsewhere."""
    if is_plumbing(kind.operator):
        return None
    return kind.phase, kind.module, family(kind.operator), kind.result


def _by_family(kind: Kind) -> Hashable | None:
    return None if is_plumbing(kind.operator) else (kind.phase, kind.module, family(kind.operator))


def _common_steps(mine: Sites, golden: Sites) -> dict[int, int]:
    """The number by which a step is compared: its own, or where the records have none in common, its place."""
    ours, theirs = sorted(set(mine.steps)), sorted(set(golden.steps))
    if set(ours) & set(theirs) or not ours or not theirs:
        return {step: step for step in (*ours, *theirs)}
    return {step: at for steps in (ours, theirs) for at, step in enumerate(steps)}
