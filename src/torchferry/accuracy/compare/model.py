"""What a comparison of two records finds: pairs of calls, curves, the differences of a whole network. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchferry.accuracy.judge.model import Difference, Judgement, Verdict
from torchferry.accuracy.model import Call, Header
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.compare.rows import PairRows


@dataclass(frozen=True, slots=True)
class Pair:
    """Two calls that do the same job; one of them may be missing."""

    mine: Call | None
    golden: Call | None
    how: str = ""  # same: in the same order; equivalent: another name; moved: found elsewhere
    inputs: tuple[Difference, ...] = ()
    outputs: tuple[Difference, ...] = ()
    judgement: Judgement = Judgement(Verdict.UNKNOWN)


@dataclass(frozen=True)
class Curve:
    """A figure of the whole network over the steps; None where a side has none."""

    name: str  # loss, gradient norm
    steps: tuple[int, ...]
    mine: tuple[float | None, ...]
    golden: tuple[float | None, ...]


@dataclass(frozen=True)
class NetworkDifference:
    """The mean absolute difference of what a whole network answers, which the vendors' guide wants to be <= 1e-4."""

    what: str  # output, loss
    step: int
    mean_abs: float


@dataclass(frozen=True)
class Comparison:
    """Two records of one rank, held against each other."""

    mine: Header
    golden: Header | None
    mine_path: str
    golden_path: str
    pairs: PairRows
    culprit: int | None  # the pair to look at first; None: nothing is wrong
    seconds: float = 0.0
    nbytes: int = 0  # that were compared, of both
    notes: tuple[Text, ...] = field(default=())
    curves: tuple[Curve, ...] = field(default=())
    network: tuple[NetworkDifference, ...] = field(default=())
