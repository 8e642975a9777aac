"""Which tensors of two calls belong together."""

from __future__ import annotations

from tests.accuracy.compare.calls import tensor
from torchferry.accuracy.compare.matching import match_tensors


def names(
    mine: list[tuple[str, tuple[int, ...]]], golden: list[tuple[str, tuple[int, ...]]], **options: bool
) -> list[str]:
    ours, theirs = ([tensor(name, shape) for name, shape in each] for each in (mine, golden))
    return [f"{one.name} = {other.name}" for one, other in match_tensors(ours, theirs, **options)]


def test_by_name() -> None:
    both = [("input/self", (2,)), ("input/other", (2,))]
    assert names(both, both[::-1]) == ["input/self = input/self", "input/other = input/other"]


def test_one_operator_with_another_shape_is_still_compared() -> None:
    """So that the wrong shape is said."""
    assert names([("output/output_0", (2,))], [("output/output_0", (3,))]) == [
        "output/output_0 = output/output_0"
    ]


def test_other_operators_by_place_and_shape() -> None:
    mine = [("input/query", (2, 4)), ("input/scale", (1,)), ("input/key", (2, 4))]
    golden = [("input/self", (2, 4)), ("input/other", (2, 4)), ("input/mask", (9,))]
    assert names(mine, golden, same_operator=False) == ["input/query = input/self", "input/key = input/other"]


def test_an_equal_name_with_another_shape_means_something_else() -> None:
    mine, golden = [("input/weight", (3,)), ("input/a", (5,))], [("input/weight", (5,)), ("input/b", (3,))]
    assert names(mine, golden, same_operator=False) == ["input/weight = input/b", "input/a = input/weight"]


def test_dtypes_of_another_sort_do_not_fit() -> None:
    assert match_tensors([tensor("input/a", dtype="int64")], [tensor("input/b")]) == []
    assert len(match_tensors([tensor("input/a", dtype="bfloat16")], [tensor("input/b")])) == 1
