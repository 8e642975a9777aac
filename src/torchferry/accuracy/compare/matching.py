"""Which calls of two records do the same job: in order, under other names, elsewhere, or in several pieces. No torch."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torchferry.accuracy.model import Call, LazySequence, TensorRecord
from torchferry.operators.names import family, is_plumbing, likeness

# Alignment of two sequences in nearly linear time: what is alike stays in order, what is extra on one side is skipped.

DIFFERENCES_AT_ONCE = 64  # a search for the shortest way goes no further before it settles for what it has
SMALL = 2 * DIFFERENCES_AT_ONCE  # here the shortest way is always found
RARE = 8  # keys that occur so often at most, and equally often on both sides, are paired in their order
DEPTH = 12  # times that what lies between anchors is looked through for further ones; each time costs a pass over all


class Alignment:
    """The pairs of positions whose keys are equal, in order; `comparisons` counts the work."""

    def __init__(self, mine: Sequence[Hashable], golden: Sequence[Hashable]) -> None:
        numbers: dict[Hashable, int] = {}
        self._mine = [numbers.setdefault(key, len(numbers)) for key in mine]
        self._golden = [numbers.setdefault(key, len(numbers)) for key in golden]
        self.comparisons = 0
        self.pairs: list[tuple[int, int]] = []
        self._align()
        self.pairs.sort()

    def _align(self) -> None:
        """Ranges wait in a list rather than on the stack: there may be tens of thousands."""
        waiting = [(range(len(self._mine)), range(len(self._golden)), 0)]
        while waiting:
            *both, depth = waiting.pop()
            mine, golden = self._trimmed(*both)
            if not mine or not golden:
                continue
            is_small = len(mine) + len(golden) <= SMALL
            anchors = self._anchors(mine, golden) if depth < DEPTH and not is_small else []
            if not anchors:
                self._settle(mine, golden)
                continue
            self.pairs += anchors
            starts = [(mine.start - 1, golden.start - 1), *anchors]
            for (one, other), (next_one, next_other) in zip(
                starts, [*anchors, (mine.stop, golden.stop)], strict=True
            ):
                waiting.append((range(one + 1, next_one), range(other + 1, next_other), depth + 1))

    def _trimmed(self, mine: range, golden: range) -> tuple[range, range]:
        """Without what is alike at both ends, which is paired."""
        first, second, stop_first, stop_second = mine.start, golden.start, mine.stop, golden.stop
        while first < stop_first and second < stop_second and self._is_same(first, second):
            self.pairs.append((first, second))
            first, second = first + 1, second + 1
        while first < stop_first and second < stop_second and self._is_same(stop_first - 1, stop_second - 1):
            stop_first, stop_second = stop_first - 1, stop_second - 1
            self.pairs.append((stop_first, stop_second))
        return range(first, stop_first), range(second, stop_second)

    def _is_same(self, one: int, other: int) -> bool:
        self.comparisons += 1
        return self._mine[one] == self._golden[other]

    def _anchors(self, mine: range, golden: range) -> list[tuple[int, int]]:
        """Calls that can hardly be mistaken: keys that occur once on each side, else a few times; in the same order."""
        self.comparisons += len(mine) + len(golden)
        ours, theirs = self._places(self._mine, mine), self._places(self._golden, golden)
        for most in (1, RARE):
            common = [
                pair
                for key, places in ours.items()
                if len(places) <= most and len(theirs.get(key, ())) == len(places)
                for pair in zip(places, theirs[key], strict=True)
            ]
            if len(common) * RARE * RARE > len(mine):
                break
        return rising(sorted(common))

    @staticmethod
    def _places(keys: list[int], positions: range) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for at in positions:
            found.setdefault(keys[at], []).append(at)
        return found

    def _settle(self, mine: range, golden: range) -> None:
        """Nothing is unique here: the shortest way through what both sides have at all."""
        ours, theirs = {self._mine[at] for at in mine}, {self._golden[at] for at in golden}
        one = [at for at in mine if self._mine[at] in theirs]
        other = [at for at in golden if self._golden[at] in ours]
        first = second = 0
        while first < len(one) and second < len(other):
            found, first, second = self._shortest_way(one, other, first, second)
            self.pairs += found

    def _shortest_way(
        self, one: list[int], other: list[int], first: int, second: int
    ) -> tuple[list[tuple[int, int]], int, int]:
        """Myers' search from a point on; where it takes too long, the way that has come farthest."""
        width, height = len(one) - first, len(other) - second
        reached = {1: 0}  # diagonal -> how far, with the differences so far
        history: list[dict[int, int]] = []
        best = (0, 0, 0)
        for differences in range(min(width + height, DIFFERENCES_AT_ONCE) + 1):
            history.append(dict(reached))
            for diagonal in range(-differences, differences + 1, 2):
                before = _diagonal_before(reached, diagonal, differences)
                x = reached[before] + (before < diagonal)
                y = x - diagonal
                while x < width and y < height and self._is_same(one[first + x], other[second + y]):
                    x, y = x + 1, y + 1
                reached[diagonal] = x
                if x <= width and y <= height and x + y > best[0] + best[1]:
                    best = (x, y, differences)
            if best[:2] == (width, height):
                break
        x, y, differences = best
        found = [(one[first + a], other[second + b]) for a, b in _way_back(history[: differences + 1], x, y)]
        return found, first + x, second + y


def _diagonal_before(reached: dict[int, int], diagonal: int, differences: int) -> int:
    """Whence the farthest point of a diagonal is reached: by skipping one of golden, or one of mine."""
    if diagonal == -differences:
        return diagonal + 1
    if diagonal != differences and reached[diagonal - 1] < reached[diagonal + 1]:
        return diagonal + 1
    return diagonal - 1


def _way_back(history: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """The steps in which both sides went on, from the end of a search to its start."""
    steps = []
    for differences in range(len(history) - 1, -1, -1):
        before = _diagonal_before(history[differences], x - y, differences)
        start_x = history[differences][before]
        start_y = start_x - before
        while x > start_x and y > start_y:
            x, y = x - 1, y - 1
            steps.append((x, y))
        x, y = start_x, start_y
    return steps


def rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part in which both positions rise; the first already do."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for at, (_, position) in enumerate(pairs):
        length = bisect_left(ends, position)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [position]
        last[length : length + 1] = [at]
    found = []
    at = last[-1] if last else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


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
class CallMatch:
    """Positions of two calls, or of one that has none on the other side."""

    mine: int | None
    golden: int | None
    how: str = NOTHING


class CallSignature(NamedTuple):
    """What of a call decides which it belongs to, besides its step and number: the same in every step."""

    operator: str
    phase: str
    module: str  # without what wrappers of whole models put before the path
    line: tuple[str, str]  # place and autograd node
    shapes: tuple[tuple[int, ...], ...]  # of the inputs
    result: tuple[int, ...]  # shape of the first output


class CallSequence:
    """All calls of a record, in order: so much smaller than the calls that those of a long run fit into memory."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self.numbers, self.steps, self._kinds = array("q"), array("q"), array("l")
        known: dict[CallSignature, int] = {}
        for call in calls:
            kind = CallSignature(
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

    def kind(self, at: int) -> CallSignature:
        """What the call at this position is like."""
        return self._known[self._kinds[at]]

    def part(self, positions: Sequence[int]) -> CallSequence:
        """Some of the calls."""
        chosen = CallSequence(())
        chosen._known = self._known
        for mine, whole in (
            (chosen.numbers, self.numbers),
            (chosen.steps, self.steps),
            (chosen._kinds, self._kinds),
        ):
            mine.extend(whole[at] for at in positions)
        return chosen

    def without_modules(self) -> CallSequence:
        """The same calls, as if all were made outside of modules."""
        bare = self.part(range(len(self)))
        bare._known = [each._replace(module="") for each in self._known]
        return bare

    def keyed(self, key: Callable[[CallSignature], int | None]) -> Callable[[int], int | None]:
        """The key of the call at a position; found once for each kind."""
        keys, kinds = [key(kind) for kind in self._known], self._kinds
        return lambda at: keys[kinds[at]]


class Matches(LazySequence[CallMatch]):
    """Many matches, a few bytes each."""

    def __init__(self, matches: Iterable[CallMatch]) -> None:
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

    def _make(self, at: int) -> CallMatch:
        mine, golden = (None if each[at] == _NONE else each[at] for each in (self._mine, self._golden))
        return CallMatch(mine, golden, self._names[self._how[at]])


def _unwrapped(module: str) -> str:
    while module == "module" or module.startswith("module."):
        module = module[len("module.") :]
    return module


def match_sites(
    mine: CallSequence, golden: CallSequence, *, is_replay: bool = False, by_name: bool = False
) -> Matches:
    """The calls that belong together, in the order of mine; `by_name`: their nodes are names of their own."""
    by_number = is_replay and have_same_numbers(mine, golden)
    return Matching(mine, golden, by_number=by_number, by_name=by_name).matches()


def have_same_numbers(mine: CallSequence, golden: CallSequence) -> bool:
    """Whether equal numbers mean equal calls: one is a replay of the other, or of a part of it."""
    places = {number: at for at, number in enumerate(golden.numbers)}
    common = [(at, places[number]) for at, number in enumerate(mine.numbers) if number in places]
    same = sum(mine.kind(at).operator == golden.kind(other).operator for at, other in common)
    return bool(common) and same >= _SAME_NUMBERS * len(common)


class Matching:
    """Two sequences of calls, held against each other; `comparisons` counts the work."""

    def __init__(
        self,
        mine: CallSequence,
        golden: CallSequence,
        *,
        by_number: bool = False,
        by_name: bool = False,
        of_apis: bool = False,
    ) -> None:
        self._mine, self._golden = mine, golden
        self._steps = _common_steps(mine, golden)
        self._partners = array("q", [_NONE]) * len(mine)  # of mine; rising but for those that are _NONE
        self._taken = bytearray(len(golden))
        self._moved: dict[int, int] = {}
        self._similar: set[tuple[int, int]] = set()
        self.comparisons = 0
        if by_number:
            self._match_numbers()
        if by_name:
            self._match_in_order(_named)
        for key in (_equivalent, _by_family) if of_apis else (_exact, _plain, _equivalent, _by_family):
            self._match_in_order(key)
        self._match_similar()
        self._match_moved()

    def matches(self) -> Matches:
        """In the order of mine; calls of golden alone stand where they would have been."""
        return Matches(self._in_order_of_mine())

    def _in_order_of_mine(self) -> Iterator[CallMatch]:
        both = self._places_of_pieces()

        def left_over(start: int, stop: int) -> Iterator[CallMatch]:
            for at in range(start, stop):
                if not self._taken[at]:
                    yield CallMatch(None, at, self._reason(self._golden, at, both))

        after = 0
        for at, other in enumerate(self._partners):
            if other != _NONE:
                yield from left_over(after, other)
                after = other + 1
                yield CallMatch(at, other, self._how(at, other))
            elif at in self._moved:
                yield CallMatch(at, self._moved[at], MOVED)
            else:
                yield CallMatch(at, None, self._reason(self._mine, at, both))
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
        common = [(at, places[number]) for at, number in enumerate(self._mine.numbers) if number in places]
        mine, golden = self._mine.kind, self._golden.kind
        self._pair(
            rising([(a, b) for a, b in common if family(mine(a).operator) == family(golden(b).operator)])
        )

    def _gaps(self) -> Iterator[tuple[range, range]]:
        first = second = 0
        for one, other in enumerate((*self._partners, len(self._golden))):
            if other == _NONE:
                continue
            if one > first and other > second:
                yield range(first, one), range(second, other)
            first, second = one + 1, other + 1

    def _match_in_order(self, key: Callable[[CallSignature], Hashable | None]) -> None:
        numbers: dict[Hashable, int] = {}

        def number(kind: CallSignature) -> int | None:
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

    def _reason(self, sites: CallSequence, at: int, both: set[Place]) -> str:
        if is_plumbing(sites.kind(at).operator):
            return EXTRA
        return GROUP if self._place(sites, at) in both else NOTHING

    def _step(self, sites: CallSequence, at: int) -> int:
        return self._steps[sites.steps[at]]

    def _place(self, sites: CallSequence, at: int) -> Place:
        kind = sites.kind(at)
        return self._step(sites, at), kind.phase, kind.module


# The keys by which the calls of a step are matched, from the strictest to the loosest; None: not by this one.


def _named(kind: CallSignature) -> Hashable | None:
    return kind.line[1] or None


def _exact(kind: CallSignature) -> Hashable:
    return *_plain(kind), kind.line


def _plain(kind: CallSignature) -> tuple[Hashable, ...]:
    return kind.phase, kind.module, kind.operator, kind.shapes


def _equivalent(kind: CallSignature) -> Hashable | None:
    """An extra copy must not be taken for one that is made elsewhere."""
    if is_plumbing(kind.operator):
        return None
    return kind.phase, kind.module, family(kind.operator), kind.result


def _by_family(kind: CallSignature) -> Hashable | None:
    return None if is_plumbing(kind.operator) else (kind.phase, kind.module, family(kind.operator))


def _common_steps(mine: CallSequence, golden: CallSequence) -> dict[int, int]:
    """The number by which a step is compared: its own, or where the records have none in common, its place."""
    ours, theirs = sorted(set(mine.steps)), sorted(set(golden.steps))
    if set(ours) & set(theirs) or not ours or not theirs:
        return {step: step for step in (*ours, *theirs)}
    return {step: at for steps in (ours, theirs) for at, step in enumerate(steps)}


# Which tensors of two calls belong together: by name, then by place and shape.

TensorPair = tuple[TensorRecord, TensorRecord]
_SCRATCH = ("workspace", "reserve")  # arguments of derivatives, and what begins like them


def match_tensors(
    mine: Sequence[TensorRecord], golden: Sequence[TensorRecord], *, same_operator: bool = True
) -> list[TensorPair]:
    """In the order of mine: those of one name; of what is left, the first that has the shape and a dtype of the same
    sort. Calls of different operators have other names for the same, so a shape must fit, too."""
    partner: dict[int, int] = {}
    by_name = {tensor.name: at for at, tensor in enumerate(golden)}
    for at, tensor in enumerate(mine):
        other = by_name.get(tensor.name)
        if other is not None and (same_operator or golden[other].shape == tensor.shape):
            partner[at] = other
    taken = set(partner.values())
    left = [at for at in range(len(golden)) if at not in taken]
    for at, tensor in enumerate(mine):
        wanted = tensor.shape, _sort(tensor.dtype)
        fitting = (each for each in left if (golden[each].shape, _sort(golden[each].dtype)) == wanted)
        if at not in partner and (found := next(fitting, None)) is not None:
            partner[at] = found
            left.remove(found)
    return [(mine[at], golden[partner[at]]) for at in sorted(partner)]


def is_scratch(tensor: TensorRecord) -> bool:
    """Whether it is memory that a kernel hands on to its derivative: parts of it may never have been written to."""
    direction, _, name = tensor.name.partition("/")
    if direction == "input":
        return name.startswith(_SCRATCH)
    return tensor.dtype == "uint8" and name.removeprefix("output_") != "0"


def _sort(dtype: str) -> str:
    if "float" in dtype:
        return "float"
    return next((kind for kind in ("complex", "bool") if dtype.startswith(kind)), "int")
