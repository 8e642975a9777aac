"""Two arrays that are in memory, compared as the pieces of records are."""

from __future__ import annotations

import numpy as np

from torchferry.accuracy.model import Metrics
from torchferry.accuracy.native.differences import Array, Measuring, metrics_of, pieces
from torchferry.accuracy.native.library import COMPONENTS


def compare_arrays(mine: Array, golden: Array, mine_dtype: str, golden_dtype: str) -> Metrics:
    """Two flat arrays of one length, as Record.array gives them."""
    both = pieces(mine, golden, mine_dtype, golden_dtype)
    return metrics_of(Measuring(mine_dtype, golden_dtype).sums(both), golden_dtype)


def picture(mine: Array, golden: Array, mine_dtype: str, golden_dtype: str, width: int = 32) -> str:
    """Where wrong elements lie: a sign for each part, from the first to the last; fewer where there are fewer."""
    measuring = Measuring(mine_dtype, golden_dtype)
    sums = measuring.sums(pieces(mine, golden, mine_dtype, golden_dtype))
    both = pieces(mine, golden, mine_dtype, golden_dtype)
    return measuring.picture(both, sums.count, sums.golden_rms, width)


def marks_of(mine: Array, golden: Array, mine_dtype: str, golden_dtype: str) -> Array:
    """RIGHT, WRONG or NONFINITE for each element of two flat arrays, a byte each."""
    measuring = Measuring(mine_dtype, golden_dtype)
    sums = measuring.sums(pieces(mine, golden, mine_dtype, golden_dtype))
    both = pieces(mine, golden, mine_dtype, golden_dtype)
    found: Array = np.concatenate([measuring.marks(*piece, sums.golden_rms) for piece in both])
    return found.reshape(-1, 2).max(axis=1) if golden_dtype in COMPONENTS else found
