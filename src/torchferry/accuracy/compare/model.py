"""What a comparison of two records finds: pairs of calls, differences in figures, a judgement of each. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from torchferry.accuracy.model import Call, Header, TensorRecord
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.compare.rows import PairRows


@dataclass(frozen=True, slots=True)
class Metrics:
    """How far one tensor is from another, element by element; nan where a figure would mean nothing.

    Relative figures leave out elements whose golden value is 0; those that differ there are counted in
    `wrong_zeros`, so that a wrong result can't look right. Elements that are not finite in one of the two are left
    out of all figures and counted in `wrong_nonfinite` unless both have the same.
    """

    count: int
    equal: int  # elements with equal values (0 and -0 are, nan and nan are)
    max_abs: float
    max_rel: float
    mean_abs: float
    mean_rel: float
    rms_rel: float
    rms_error: float  # root of the mean of the squared differences
    relative_euclidean: float  # norm of the difference over the norm of golden
    cosine: float
    bias: float  # mean of mine - golden
    within_thousandth: float  # share of elements whose relative error is below 1e-3
    within_five_thousandths: float
    max_ulp: float  # in units of the last place of golden's dtype
    mean_ulp: float
    wrong_zeros: int  # golden is 0, mine is not
    wrong_nonfinite: int  # nan or infinity in one, something else in the other
    nans: int  # of mine
    infinities: int  # of mine
    zeros: int  # of mine
    golden_zeros: int
    worst: (
        int  # position of the element with the largest difference, in the order of the file; -1: none differs
    )

    @property
    def is_equal(self) -> bool:
        """Whether every element is the same."""
        return self.equal == self.count


class Verdict(str, Enum):
    """What is said of a call, from good to bad."""

    EQUAL = "equal"  # every bit
    NORMAL = "normal"  # it differs as rounding does
    INHERITED = "inherited"  # its inputs differ already; from these inputs, its results are as they should be
    REDUCED = "reduced"  # it computes with fewer digits than its dtype has (as TF32 does), and nothing else
    UNKNOWN = "unknown"  # nothing can be said, and the judgement says why
    UNEXPLAINED = "unexplained"  # it differs, and what was recorded does not say whether that is right
    SUSPICIOUS = "suspicious"  # its own error is larger than it should be
    FAULT = "fault"  # its own error is not of rounding
    PROGRAM = "program"  # the programs differ here: other arguments, or only one side makes the call


class Sort(str, Enum):
    """What kind of error a fault looks like."""

    NONE = ""
    NAN = "nan"
    INFINITE = "infinite"
    ZERO = "zero"  # all zero, golden is not
    TAIL = "tail"  # wrong from some element to the end
    TILE = "tile"  # wrong in blocks at regular distances
    STRIPE = "stripe"  # every n-th element
    CHANNEL = "channel"  # wrong in some channels only
    STALE = "stale"  # what was there before was not overwritten, or comes from another call
    UNWRITTEN = "unwritten"  # an argument that should have been written to was left as it was
    SCALE = "scale"  # a constant times what it should be
    BIAS = "bias"  # a constant added to what it should be
    SIGN = "sign"
    TRANSPOSED = "transposed"
    SHIFTED = "shifted"  # right values, at the wrong place
    ACCUMULATE = "accumulate"  # what was there before was not added, or added twice
    MISREAD = "misread"  # as if an argument had another value
    LATE = "late"  # as if a part of an input had not been there yet
    PRECISION = "precision"  # rounded, or added up, with too few digits
    POINTS = "points"  # single elements
    RANDOM = "random"  # random numbers are not distributed as they should be
    SHAPE = "shape"  # another shape or dtype
    ARGUMENTS = "arguments"  # it was called with others
    ONE_SIDED = "one-sided"  # the other side does not make this call
    VALUES = "values"  # something else


@dataclass(frozen=True)
class Judgement:
    """What is said of one call, and why. Errors are relative to the size of the result that is right."""

    verdict: Verdict
    sort: Sort = Sort.NONE
    output: str = ""  # output/output_0: the worst
    own_error: float | None = None  # of mine, from its own inputs, against double precision
    golden_error: float | None = None  # of golden, from its own inputs, against double precision
    limit: float | None = None  # what would still have been normal
    basis: str = (
        ""  # how `own_error` was found: float64, golden (a replay without a reference), formula of a class
    )
    why: Text | None = None  # one sentence


@dataclass(frozen=True, slots=True)
class Difference:
    """One tensor of a pair of calls."""

    mine: TensorRecord
    golden: TensorRecord
    metrics: Metrics | None  # None: contents are missing, or shapes do not fit
    picture: str = ""  # where the differences lie: a row of signs, from the first element to the last
    reason: str = ""  # why there are no metrics


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
