"""Judges calls of functions and modules, as msprobe dumps them, by the figures of their tensors. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchferry.accuracy.compare.statistics import (
    FAINT,
    GOLDEN_BASIS,
    ForwardDistances,
    distance_of_figures,
    faint_results,
    judge_by_figures,
)
from torchferry.accuracy.file.api_names import GRADIENTS, MODULE
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict
from torchferry.text import Text

_GRADIENTS = Text(
    "the gradients differ although nothing before them does: they may include gradients of other "
    "ranks; see the reports of those ranks",
    "梯度不同，而此前没有差异：其中可能含有其他 rank 的梯度，请查看那些 rank 的报告",
)
_BAD = (Verdict.FAULT, Verdict.SUSPICIOUS, Verdict.REDUCED)


class ApiJudge:
    """Judges pairs in their order. Golden is taken for right. Of calls without inputs, what came before counts; of those
    of the backward pass, also what went through the forward call, which is no input in a dump."""

    def __init__(self) -> None:
        self._apart = 0.0  # the largest distance of results so far
        self._forward = ForwardDistances()

    def judge(self, pair: CallPair) -> Judgement:
        """The judgement of the next pair."""
        assert pair.mine is not None
        faint = [] if _are_equal(pair.outputs) else faint_results(pair)
        rest = tuple(each for each in pair.outputs if each not in faint)
        if faint and not rest:
            return Judgement(Verdict.NORMAL, basis=GOLDEN_BASIS, why=FAINT)
        judgement = judge_by_figures(replace(pair, outputs=rest))
        if judgement.verdict in _BAD:
            judgement = self._of_bad(pair, judgement)
        self._apart = max([self._apart, *map(distance_of_figures, rest)])
        self._forward.see(pair.mine, max(map(distance_of_figures, (*pair.inputs, *rest)), default=0.0))
        return judgement

    def _of_bad(self, pair: CallPair, judgement: Judgement) -> Judgement:
        """What is explained by what came before, or may come from other processes, is not the call's fault."""
        assert pair.mine is not None
        before = 0.0 if _has_figures(pair.inputs) else self._apart
        if max(before, self._forward.behind(pair.mine)) > (judgement.limit or 0.0):
            return replace(judgement, verdict=Verdict.INHERITED, sort=ErrorKind.NONE, why=None)
        if pair.mine.operator == f"{MODULE}::{GRADIENTS}":
            return replace(judgement, verdict=Verdict.UNEXPLAINED, sort=ErrorKind.NONE, why=_GRADIENTS)
        return judgement


def _has_figures(differences: Sequence[PairDifference]) -> bool:
    return any(each.metrics is not None for each in differences)


def _are_equal(differences: Sequence[PairDifference]) -> bool:
    return all(each.metrics is not None and each.metrics.is_equal for each in differences)
