"""How tensors of several processes make up one, which samples each has, what a reduction has made of gradients."""

from __future__ import annotations

import numpy as np
import pytest

from torchferry.accuracy.compare.batches import divided
from torchferry.accuracy.compare.layouts import (
    Array,
    RankLayout,
    SampleRows,
    Way,
    best_fit,
    coarser,
    distance,
    root_mean_square,
)
from torchferry.accuracy.compare.reduction import ReductionKind, reduction_of, share_of_samples

_SOURCE = np.random.default_rng(0)
LIMIT = 1e-6


def random(*shape: int) -> Array:
    return _SOURCE.standard_normal(shape)


def dealt(count: int, ranks: int) -> SampleRows:
    """Sample by sample in turn."""
    return SampleRows(tuple(np.arange(rank, count, ranks) for rank in range(ranks)), count)


WHOLE = random(8, 12)
EVEN = dealt(8, 2)
PARTS = {
    "each has all": ([WHOLE, WHOLE], RankLayout(Way.SAME)),
    "samples": ([WHOLE[0::2], WHOLE[1::2]], RankLayout(Way.ROWS, 0)),
    "columns": ([WHOLE[:, :6], WHOLE[:, 6:]], RankLayout(Way.SPLIT, 1)),
    "pieces of other lengths": ([WHOLE[:5], WHOLE[5:]], RankLayout(Way.SPLIT, 0)),
    "an empty piece": ([WHOLE, WHOLE[:0]], RankLayout(Way.SPLIT, 0)),
    "query, key and value": (
        [np.concatenate([WHOLE[:, at + rank * 2 : at + rank * 2 + 2] for at in (0, 4, 8)], 1) for rank in (0, 1)],
        RankLayout(Way.FUSED, 1, 3),
    ),
    "parts of a sum": ([WHOLE / 3, WHOLE * 2 / 3], RankLayout(Way.SUM)),
    "a mean": ([WHOLE * 0.5, WHOLE * 1.5], RankLayout(Way.MEAN)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PARTS))
def test_layouts_are_found_by_contents(name: str) -> None:
    parts, layout = PARTS[name]
    found = best_fit(parts, [WHOLE], EVEN, 0.0, LIMIT)
    assert found is not None and found.distance <= LIMIT and found.layout == layout
    parts = [parts[0], parts[1] + 1.0] if parts[1].size else [parts[0] + 1.0, parts[1]]
    found = best_fit(parts, [WHOLE], EVEN, 0.0, LIMIT)
    assert found is not None and found.distance > 0.01


def test_one_rank_that_is_off_is_named() -> None:
    found = best_fit([WHOLE, WHOLE, WHOLE + 0.1], [WHOLE], SampleRows(), 0.0, LIMIT)
    assert found is not None and (found.layout.way, found.rank) == (Way.SAME, 2)
    found = best_fit([WHOLE[0::2], WHOLE[1::2] * 1.1], [WHOLE], EVEN, 0.0, LIMIT)
    assert found is not None and (found.layout.way, found.rank) == (Way.ROWS, 1)
    assert best_fit([WHOLE], [random(3, 3)], SampleRows(), 0.0, LIMIT) is None  # no shape that fits


def test_rows_of_samples_and_of_their_tokens() -> None:
    tokens = random(8 * 5, 3)  # five of each sample, one after the other
    samples = tokens.reshape(8, 5, 3)
    parts = [samples[rank::2].reshape(-1, 3) for rank in (0, 1)]
    found = best_fit(parts, [tokens], EVEN, 0.0, LIMIT)
    assert found is not None and found.layout.way is Way.ROWS
    first = samples.transpose(1, 0, 2)  # the first tokens of all samples, then the second ones
    parts = [first[:, rank::2].reshape(-1, 3) for rank in (0, 1)]
    found = best_fit(parts, [first.reshape(-1, 3)], EVEN, 0.0, LIMIT)
    assert found is not None and found.layout.way is Way.ROWS
    division = divided(parts, [first.reshape(-1, 3)], (0, 1))
    assert division is not None and division.problem is None and division.rows.count == 40
    found = best_fit([WHOLE[0::2], WHOLE[1::2]], [WHOLE], division.rows, 0.0, LIMIT)
    assert found is not None and found.layout.way is Way.ROWS
    assert coarser(dealt(40, 3), 8) is None  # tokens of one sample on several ranks


def test_nan_and_huge_numbers() -> None:
    odd = np.array([1.0, np.nan, np.inf, 2.0])
    assert distance(odd, odd.copy()) == 0.0
    assert distance(np.array([1.0, 2.0, np.inf, 2.0]), odd) == np.inf
    assert root_mean_square(np.array([3e200, 4e200])) == pytest.approx(np.sqrt(12.5) * 1e200)
    assert root_mean_square(np.zeros(3)) == 0.0 and root_mean_square(np.empty(0)) == 0.0


def test_how_a_batch_is_divided() -> None:
    def said(*parts: Array) -> tuple[str, int | None]:
        found = divided(parts, [WHOLE], range(len(parts)))
        assert found is not None and found.said.zh
        return (found.problem or found.said).en, found.rank

    assert said(WHOLE[:4], WHOLE[4:])[0].startswith("each rank takes the next consecutive block")
    assert "DistributedSampler" in said(WHOLE[0::2], WHOLE[1::2])[0]
    assert said(WHOLE[[0, 3]], WHOLE[[2, 1, 4, 7, 6, 5]])[0].startswith("in another order")
    assert said(WHOLE, WHOLE)[0] == "every rank has the whole batch"
    assert said(WHOLE[:4], WHOLE[[4, 5, 6, 0]]) == (
        "sample 0 of the batch is on several ranks (0, 1); sample 7 is on no rank",
        1,
    )
    assert said(WHOLE[:4], random(4, 12))[0].startswith("on rank 1, 4 of 4 samples are not in")
    assert said(WHOLE[:3], WHOLE[3:6])[0].startswith(
        "the ranks have 6 samples in total, the other side has 8"
    )
    assert divided([np.zeros((4, 1))] * 2, [np.zeros((8, 1))], (0, 1)) is None  # labels tell nothing


def test_samples_that_occur_twice_in_the_batch_are_no_mistake() -> None:
    batch = WHOLE[[0, 1, 2, 0, 4, 5, 6, 7]]
    found = divided([batch[:4], batch[4:]], [batch], (0, 1))
    assert found is not None and found.problem is None


OWN = [random(20, 3) for _ in range(4)]
MEAN = sum(OWN) / 4
REDUCTIONS = {
    ReductionKind.MEAN: [MEAN] * 4,
    ReductionKind.SUM: [MEAN * 4] * 4,
    ReductionKind.SCALED: [MEAN * 0.3] * 4,
    ReductionKind.LOST: [(OWN[0] + OWN[1] + OWN[3]) / 4] * 4,
    ReductionKind.OWN: OWN,
    ReductionKind.UNEVEN: [(2 * OWN[0] + OWN[1] + OWN[2] + OWN[3]) / 5] * 4,
    ReductionKind.APART: [MEAN, MEAN, OWN[2], MEAN],
    ReductionKind.OTHER: [np.sign(MEAN)] * 4,
}


@pytest.mark.parametrize("kind", list(REDUCTIONS))
def test_what_a_reduction_has_made(kind: ReductionKind) -> None:
    found = reduction_of(OWN, REDUCTIONS[kind])
    assert found.kind is kind
    assert found.ranks == ((2,) if kind in (ReductionKind.LOST, ReductionKind.APART) else ())


def test_what_can_t_be_told_of_a_reduction() -> None:
    assert reduction_of([OWN[0]] * 4, [OWN[0]] * 4).kind is ReductionKind.UNKNOWN  # all alike
    few = [random(2) for _ in range(4)]
    assert reduction_of(few, [sum(few) / 4] * 4).kind is ReductionKind.UNKNOWN  # too few elements


def test_how_often_samples_count() -> None:
    gradient = random(8, 5)
    shares = share_of_samples([gradient[0::2] * 2, gradient[1::2] * 2], [gradient], EVEN)
    assert shares is not None and np.allclose(shares, 2)
    uneven = SampleRows((np.arange(5), np.arange(5, 8)), 8)
    shares = share_of_samples([gradient[:5] * 8 / 5, gradient[5:] * 8 / 3], [gradient], uneven)
    assert shares is not None and np.allclose(shares, [8 / 5, 8 / 3])
    assert share_of_samples([gradient[:3], gradient[3:]], [gradient], EVEN) is None
