"""Judges calls of functions and modules, as msprobe dumps them, by the figures of their tensors. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchferry.accuracy.compare.statistics import (
    FAINT,
    GOLDEN_BASIS,
    distance_of_figures,
    faint_results,
    judge_by_figures,
)
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict

_BAD = (Verdict.FAULT, Verdict.SUSPICIOUS, Verdict.REDUCED)


class ApiJudge:
    """Judges pairs in their order. Golden is taken for right; of calls without inputs, what came before counts."""

    def __init__(self) -> None:
        self._apart = 0.0  # the largest distance of results so far

    def judge(self, pair: CallPair) -> Judgement:
        """The judgement of the next pair."""
        faint = [] if _are_equal(pair.outputs) else faint_results(pair)
        rest = tuple(each for each in pair.outputs if each not in faint)
        if faint and not rest:
            return Judgement(Verdict.NORMAL, basis=GOLDEN_BASIS, why=FAINT)
        judgement = judge_by_figures(replace(pair, outputs=rest))
        if judgement.verdict in _BAD and not _has_figures(pair.inputs) and self._is_explained(judgement):
            judgement = replace(judgement, verdict=Verdict.INHERITED, sort=ErrorKind.NONE, why=None)
        self._apart = max([self._apart, *map(distance_of_figures, rest)])
        return judgement

    def _is_explained(self, judgement: Judgement) -> bool:
        return self._apart > (judgement.limit or 0.0)


def _has_figures(differences: Sequence[PairDifference]) -> bool:
    return any(each.metrics is not None for each in differences)


def _are_equal(differences: Sequence[PairDifference]) -> bool:
    return all(each.metrics is not None and each.metrics.is_equal for each in differences)
