"""A small part of the fuzzer's inputs, always the same ones; `python -m tests.conversion.fuzzing -n 100000` for more."""

from __future__ import annotations

import pytest

from tests.conversion.fuzzing.cases import make_case
from tests.conversion.fuzzing.checks import Result, check

_BAD = (Result.BROKEN, Result.GIVEN_UP)


def _bad(seeds: range) -> list[tuple[int, str]]:
    found = ((seed, *check(make_case(seed))) for seed in seeds)
    return [(seed, reason) for seed, result, reason in found if result in _BAD]


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_made_up_modules(start: int) -> None:
    assert _bad(range(start, start + 50)) == []


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 6000, 1000))
def test_many_made_up_modules(start: int) -> None:
    assert _bad(range(start, start + 1000)) == []
