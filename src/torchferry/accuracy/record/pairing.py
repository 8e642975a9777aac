"""Finds, while a program runs, the recorded call that does the same job as the one that it is about to make."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Sequence

from torchferry.accuracy.compare.names import is_plumbing
from torchferry.accuracy.model import Call, group_name
from torchferry.observe.where import Site

Shapes = tuple[tuple[int, ...], ...]


class Pairing:
    """Calls are found by step, phase, module, operator and shapes, in order: first those of the same line, then any.

    An operator that only one of the two programs calls leaves the others where they are. Copies and casts, of which
    devices make more or fewer, have to be those of the same line.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._steps = {step: place for place, step in enumerate(sorted({call.step for call in calls}))}
        self._has_sites = any(call.phase for call in calls)  # vendors' own dumpers do not say where
        self._exact: dict[Hashable, deque[int]] = defaultdict(deque)
        self._plain: dict[Hashable, deque[int]] = defaultdict(deque)
        self._taken: set[int] = set()
        self._lock = threading.Lock()
        self.count = 0  # calls that can be paired
        self.unpaired: Counter[str] = Counter()  # of the program that runs, by operator

    def add(self, place: int, call: Call) -> None:
        """A call of the record that waits for its like."""
        site = Site(call.phase, call.module, call.place, call.model, "", call.node)
        exact, plain = self._keys(self._steps[call.step], site, call.operator, _shapes(call))
        self._exact[exact].append(place)
        self._plain[plain].append(place)
        self.count += 1

    @property
    def paired(self) -> int:
        """How many were found so far."""
        return len(self._taken)

    def find(self, step: int, site: Site, operator: str, shapes: Shapes) -> Call | None:
        """The like of a call of the n-th step, n from 0."""
        exact, plain = self._keys(step, site, operator, shapes)
        with self._lock:
            place = self._next(self._exact.get(exact))
            if place is None and not is_plumbing(operator):
                place = self._next(self._plain.get(plain))
            if place is None:
                self.unpaired[operator] += 1
                return None
            self._taken.add(place)
        return self._calls[place]

    def _next(self, waiting: deque[int] | None) -> int | None:
        while waiting:
            place = waiting.popleft()
            if place not in self._taken:
                return place
        return None

    def _keys(self, step: int, site: Site, operator: str, shapes: Shapes) -> tuple[Hashable, Hashable]:
        group = group_name(operator)
        if not self._has_sites:
            return (group, shapes), (group, shapes)
        plain = (step, site.phase, site.module, group, shapes)
        return (*plain, site.place, site.node), plain


def _shapes(call: Call) -> Shapes:
    return tuple(tensor.shape for tensor in call.inputs)
