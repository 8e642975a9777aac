"""Alignment of two sequences in nearly linear time: what is alike stays in order, what is extra on one side is skipped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence

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
