"""Which calls of two records do the same job: in order, under other names, elsewhere, or in several pieces. No torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from torchferry.accuracy.compare.alignment import Alignment, rising
from torchferry.accuracy.compare.names import family, is_plumbing, likeness
from torchferry.accuracy.compare.once import Once
from torchferry.accuracy.model import Call

SAME, EQUIVALENT, SIMILAR, MOVED = "same", "equivalent", "similar", "moved"
GROUP = "group"  # one side does in several calls what the other does in one
EXTRA = "extra"  # a copy, cast or view that one side makes and the other does not
NOTHING = ""  # no call of the other side does this
_ALIKE = 0.6  # of the words of two operators' names
_SAME_NUMBERS = 0.95  # of the calls must have the number of an equal one, for the numbers to be believed
_SMALL = 64  # calls of a gap in which names are held against each other
OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True)
class Match:
    """Positions of two calls, or of one that has none on the other side."""

    mine: int | None
    golden: int | None
    how: str = NOTHING


@dataclass(frozen=True, slots=True)
class Site:
    """What of a call decides which it belongs to; so much smaller than a call that all fit into memory."""

    number: int
    operator: str
    step: int
    phase: str
    module: str  # without what wrappers of whole models put before the path
    line: tuple[str, str]  # place and autograd node
    shapes: tuple[tuple[int, ...], ...]  # of the inputs
    result: tuple[int, ...]  # shape of the first output


def sites_of(calls: Iterable[Call]) -> list[Site]:
    """Of all calls, in order; what repeats is kept once."""
    once = Once()
    return [
        Site(
            call.number,
            once(call.operator),
            call.step,
            once(call.phase),
            once(_unwrapped(call.module)),
            once((call.place, call.node)),
            once(tuple(tensor.shape for tensor in call.inputs)),
            once(call.outputs[0].shape if call.outputs else ()),
        )
        for call in calls
    ]


def _unwrapped(module: str) -> str:
    while module == "module" or module.startswith("module."):
        module = module[len("module.") :]
    return module


def match_sites(mine: Sequence[Site], golden: Sequence[Site], *, is_replay: bool = False) -> list[Match]:
    """The calls that belong together, in the order of mine."""
    return Matching(mine, golden, by_number=is_replay and have_same_numbers(mine, golden)).matches()


def have_same_numbers(mine: Sequence[Site], golden: Sequence[Site]) -> bool:
    """Whether equal numbers mean equal calls: one is a replay of the other, or of a part of it."""
    operators = {site.number: site.operator for site in golden}
    common = [site for site in mine if site.number in operators]
    same = sum(operators[site.number] == site.operator for site in common)
    return bool(common) and same >= _SAME_NUMBERS * len(common)


class Matching:
    """Two sequences of calls, held against each other; `comparisons` counts the work."""

    def __init__(self, mine: Sequence[Site], golden: Sequence[Site], *, by_number: bool = False) -> None:
        self._mine, self._golden = mine, golden
        self._steps = _common_steps(mine, golden)
        self._pairs: list[tuple[int, int]] = []  # in order on both sides
        self._moved: list[tuple[int, int]] = []
        self._similar: set[tuple[int, int]] = set()
        self.comparisons = 0
        if by_number:
            self._match_numbers()
        for key in (self._exact, self._plain, self._equivalent, self._by_family):
            self._match_in_order(key)
        self._match_similar()
        self._match_moved()

    def matches(self) -> list[Match]:
        """In the order of mine; calls of golden alone stand where they would have been."""
        in_order, moved = dict(self._pairs), dict(self._moved)
        taken = {*in_order.values(), *moved.values()}
        both = self._places_of_pieces({*in_order, *moved}, taken)

        def left_over(start: int, stop: int) -> Iterator[Match]:
            for at in range(start, stop):
                if at not in taken:
                    yield Match(None, at, self._reason(self._golden[at], both))

        found: list[Match] = []
        after = 0
        for at, site in enumerate(self._mine):
            if at in in_order:
                found += left_over(after, in_order[at])
                after = in_order[at] + 1
                found.append(Match(at, in_order[at], self._how(at, in_order[at])))
            elif at in moved:
                found.append(Match(at, moved[at], MOVED))
            else:
                found.append(Match(at, None, self._reason(site, both)))
        return [*found, *left_over(after, len(self._golden))]

    def _how(self, one: int, other: int) -> str:
        if self._mine[one].operator == self._golden[other].operator:
            return SAME
        return SIMILAR if (one, other) in self._similar else EQUIVALENT

    def _match_numbers(self) -> None:
        places = {site.number: at for at, site in enumerate(self._golden)}
        self._pairs = rising(
            [
                (at, other)
                for at, site in enumerate(self._mine)
                if (other := places.get(site.number)) is not None
                and family(self._golden[other].operator) == family(site.operator)
            ]
        )

    def _gaps(self) -> Iterator[tuple[range, range]]:
        """What lies between pairs, where both sides have something."""
        first = second = 0
        for one, other in [*self._pairs, (len(self._mine), len(self._golden))]:
            if one > first and other > second:
                yield range(first, one), range(second, other)
            first, second = one + 1, other + 1

    def _match_in_order(self, key: Callable[[Site], Hashable | None]) -> None:
        found: list[tuple[int, int]] = []
        for mine, golden in self._gaps():
            ours, theirs = _keyed(self._mine, mine, key), _keyed(self._golden, golden, key)
            alignment = Alignment([name for _, name in ours], [name for _, name in theirs])
            self.comparisons += alignment.comparisons
            found += [(ours[one][0], theirs[other][0]) for one, other in alignment.pairs]
        self._pairs = sorted([*self._pairs, *found])

    def _match_similar(self) -> None:
        """In small gaps: operators of one module whose names are alike, as a vendor's own are to PyTorch's."""
        for mine, golden in self._gaps():
            if len(mine) * len(golden) > _SMALL * _SMALL:
                continue
            start = golden.start
            for one in mine:
                for other in range(start, golden.stop):
                    self.comparisons += 1
                    if self._is_similar(self._mine[one], self._golden[other]):
                        self._similar.add((one, other))
                        start = other + 1
                        break
        self._pairs = sorted([*self._pairs, *self._similar])

    def _is_similar(self, mine: Site, golden: Site) -> bool:
        if is_plumbing(mine.operator) or is_plumbing(golden.operator):
            return False
        return self._place(mine) == self._place(golden) and likeness(mine.operator, golden.operator) >= _ALIKE

    def _match_moved(self) -> None:
        """What is left of one operator in one place, in order, wherever it stands."""
        partner = dict(self._pairs)
        taken = set(partner.values())
        places: dict[Hashable, list[int]] = defaultdict(list)
        for at, site in enumerate(self._golden):
            if at not in taken and not is_plumbing(site.operator):
                places[self._plain(site)].append(at)
        for at, site in enumerate(self._mine):
            waiting = places.get(self._plain(site)) if at not in partner else None
            if waiting:
                self._moved.append((at, waiting.pop(0)))

    def _places_of_pieces(self, ours: set[int], theirs: set[int]) -> set[tuple[int, str, str]]:
        """Modules, and optimizer steps, in which both sides have calls left: they do one job in different pieces."""
        here, there = (
            {
                self._place(site)
                for at, site in enumerate(sites)
                if at not in matched and not is_plumbing(site.operator)
            }
            for sites, matched in ((self._mine, ours), (self._golden, theirs))
        )
        return {place for place in here & there if place[2] or place[1] == OPTIMIZER}

    def _reason(self, site: Site, both: set[tuple[int, str, str]]) -> str:
        if is_plumbing(site.operator):
            return EXTRA
        return GROUP if self._place(site) in both else NOTHING

    def _place(self, site: Site) -> tuple[int, str, str]:
        return self._steps[site.step], site.phase, site.module

    # The keys by which calls are matched, from the strictest to the loosest; None: not by this one.

    def _exact(self, site: Site) -> Hashable:
        return *self._plain(site), site.line

    def _plain(self, site: Site) -> tuple[Hashable, ...]:
        return *self._place(site), site.operator, site.shapes

    def _equivalent(self, site: Site) -> Hashable | None:
        """An extra copy must not be taken for one that is made elsewhere."""
        if is_plumbing(site.operator):
            return None
        return *self._place(site), family(site.operator), site.result

    def _by_family(self, site: Site) -> Hashable | None:
        return None if is_plumbing(site.operator) else (*self._place(site), family(site.operator))


def _keyed(
    sites: Sequence[Site], positions: range, key: Callable[[Site], Hashable | None]
) -> list[tuple[int, Hashable]]:
    named = ((at, key(sites[at])) for at in positions)
    return [(at, name) for at, name in named if name is not None]


def _common_steps(mine: Sequence[Site], golden: Sequence[Site]) -> dict[int, int]:
    """The number by which a step is compared: its own, or where the records have none in common, its place."""
    ours, theirs = sorted({site.step for site in mine}), sorted({site.step for site in golden})
    if set(ours) & set(theirs) or not ours or not theirs:
        return {step: step for step in (*ours, *theirs)}
    return {step: at for steps in (ours, theirs) for at, step in enumerate(steps)}
