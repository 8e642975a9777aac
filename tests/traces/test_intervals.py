"""Sets of moments agree with what counting single moments gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchferry.traces.intervals import Intervals

_SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def _moments(spans: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in spans for moment in range(start, end)}


def _intervals(spans: list[tuple[int, int]]) -> Intervals:
    return Intervals.union(*np.array(spans, np.int64).reshape(-1, 2).T)


def _as_moments(found: Intervals) -> set[int]:
    assert (found.start[1:] > found.end[:-1]).all(), "sorted, and apart"
    return _moments(list(zip(found.start.tolist(), found.end.tolist(), strict=True)))


@given(_SPANS, _SPANS)
def test_union_intersection_difference(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    a, b = _intervals(first), _intervals(second)

    assert _as_moments(a) == _moments(first)
    assert _as_moments(a | b) == _moments(first) | _moments(second)
    assert _as_moments(a & b) == _moments(first) & _moments(second)
    assert _as_moments(a - b) == _moments(first) - _moments(second)
    assert a.total == len(_moments(first))


@given(_SPANS, st.integers(0, 40), st.integers(0, 40))
def test_a_part_of_it(spans: list[tuple[int, int]], start: int, end: int) -> None:
    inside = _moments(spans) & set(range(start, end))

    assert set(np.flatnonzero(_intervals(spans).holds(np.arange(40))).tolist()) == _moments(spans)
    if end >= start:
        covered = _intervals(spans).covered(np.array([start]), np.array([end]))
        assert covered.tolist() == [len(inside)]
