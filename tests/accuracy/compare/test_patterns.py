"""Patterns of wrong elements: each is recognised, also where some are right by chance, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from torchferry.accuracy.judge.model import ErrorKind
from torchferry.accuracy.judge.sorting import Pattern, channels, find_pattern, stripes, tail, tiles


def right(*shape: int) -> np.ndarray:
    return np.zeros(shape, bool)


def thinned(wrong: np.ndarray) -> np.ndarray:
    """One of eleven is right by chance."""
    chance = np.random.default_rng(0).random(wrong.shape) > 1 / 11
    return wrong & chance


@pytest.mark.parametrize(
    "wrong",
    [
        right(4, 5),
        np.ones((64, 64), bool),
        np.random.default_rng(1).random((64, 64)) > 0.5,
        np.random.default_rng(2).random((64, 64)) > 0.995,
        right(0),
    ],
    ids=["nothing", "everything", "half of it at random", "single elements", "empty"],
)
def test_no_pattern(wrong: np.ndarray) -> None:
    assert find_pattern(wrong) is None


def test_tail() -> None:
    wrong = right(10, 100)
    wrong.reshape(-1)[937:] = True
    assert tail(wrong) == find_pattern(wrong) == Pattern(ErrorKind.TAIL, start=937, length=63)
    assert find_pattern(thinned(wrong)).sort is ErrorKind.TAIL


def test_the_last_element_alone_is_a_tail() -> None:
    wrong = right(100)
    wrong[-1] = True
    assert find_pattern(wrong) == Pattern(ErrorKind.TAIL, start=99, length=1)


def test_a_middle_is_no_tail() -> None:
    wrong = right(100)
    wrong[50:80] = True
    assert tail(wrong) is None


@pytest.mark.parametrize(("dimension", "indices"), [(0, (1,)), (1, (3, 7)), (2, (0,)), (3, (4, 5))])
def test_channels(dimension: int, indices: tuple[int, ...]) -> None:
    wrong = right(4, 16, 9, 11)
    np.moveaxis(wrong, dimension, 0)[list(indices)] = True
    for each in (wrong, thinned(wrong)):
        assert (
            channels(each)
            == find_pattern(each)
            == Pattern(ErrorKind.CHANNEL, dimension=dimension, indices=indices)
        )


def test_the_ends_of_all_rows_are_channels() -> None:
    wrong = right(50, 37)
    wrong[:, 32:] = True
    assert find_pattern(wrong) == Pattern(ErrorKind.CHANNEL, dimension=1, indices=(32, 33, 34, 35, 36))


@pytest.mark.parametrize("side", [4, 16, 64])
def test_tiles_of_a_matrix(side: int) -> None:
    wrong = right(3, 260, 300)
    wrong[1, side : 2 * side, :side] = True
    wrong[2, :side, 2 * side : 3 * side] = True
    for each in (wrong, thinned(wrong)):
        found = find_pattern(each)
        assert found is not None and (found.sort, found.tile) == (ErrorKind.TILE, (side, side))
    assert tiles(wrong).start == (260 + side) * 300


def test_blocks_of_a_vector() -> None:
    wrong = right(10_000)
    for start in range(96, 10_000, 128):
        wrong[start : start + 32] = True
    assert find_pattern(wrong) == Pattern(ErrorKind.TILE, start=96, distance=128, length=32)


def test_stripes() -> None:
    wrong = right(10_000)
    wrong[5::16] = True
    assert stripes(wrong) == find_pattern(wrong) == Pattern(ErrorKind.STRIPE, start=5, distance=16, length=1)
    assert stripes(right(9)) is None


def test_every_second_element() -> None:
    wrong = right(33, 31)
    wrong.reshape(-1)[::2] = True
    found = find_pattern(wrong)
    assert found is not None and (found.sort, found.distance) == (ErrorKind.STRIPE, 2)
