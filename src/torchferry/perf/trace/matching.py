"""Finds rows by numbers that both sides have."""

from __future__ import annotations

import numpy as np

from torchferry.perf.trace.columns import Ints


def matched(wanted: Ints, known: Ints) -> Ints:
    """For each number the last row that has it; -1: none."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, wanted, side="right", sorter=order) - 1
    rows = order[np.maximum(place, 0)]
    return np.where((wanted > 0) & (place >= 0) & (known[rows] == wanted), rows, -1)
