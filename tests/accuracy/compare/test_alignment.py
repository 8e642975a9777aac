"""Alignment of two sequences."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from torchferry.accuracy.compare.matching import Alignment

WORDS = st.lists(st.sampled_from("abcd"), max_size=24)


def longest(one: list[str], other: list[str]) -> int:
    """Of all that both have in this order, how long is the longest; the slow way."""
    row = [0] * (len(other) + 1)
    for letter in one:
        above = row[:]
        for at, match in enumerate(other):
            row[at + 1] = above[at] + 1 if letter == match else max(row[at], above[at + 1])
    return row[-1]


@given(WORDS, WORDS)
def test_pairs_are_equal_and_in_order(one: list[str], other: list[str]) -> None:
    pairs = Alignment(one, other).pairs
    assert all(one[a] == other[b] for a, b in pairs)
    assert all(first[0] < second[0] and first[1] < second[1] for first, second in pairwise(pairs))


@given(WORDS, st.lists(st.tuples(st.integers(0, 30), st.sampled_from("xyz")), max_size=4))
def test_what_was_only_put_in_costs_nothing(one: list[str], extra: list[tuple[int, str]]) -> None:
    other = one[:]
    for place, letter in extra:
        other.insert(min(place, len(other)), letter)
    assert len(Alignment(one, other).pairs) == len(one)


def test_it_is_nearly_as_long_as_can_be() -> None:
    one, other = list("abcabcabdabcaab"), list("abcbcabcabddbcab")
    assert len(Alignment(one, other).pairs) >= longest(one, other) - 1


def test_long_sequences_without_order_end_soon() -> None:
    one, other = [at * 7919 % 31 for at in range(20_000)], [at * 104_729 % 37 for at in range(20_000)]
    assert Alignment(one, other).comparisons < 150 * 40_000
