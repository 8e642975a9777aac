"""What a report of performance is made of."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.perf.compare.model import Comparison
from torchferry.perf.model import Analysis

TOP = 15  # rows of a table, unless asked otherwise


@dataclass(frozen=True)
class Report:
    """The processes of one run, and how each compares with the baseline if there is one."""

    analyses: tuple[Analysis, ...]
    comparisons: tuple[Comparison, ...] = ()
    top: int = TOP
