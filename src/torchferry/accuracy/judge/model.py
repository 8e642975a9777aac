"""Two calls that do the same job, how their tensors differ, and what is said of that. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchferry.accuracy.model import Call, Metrics, TensorRecord
from torchferry.text import Text


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


class ErrorKind(str, Enum):
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
    sort: ErrorKind = ErrorKind.NONE
    output: str = ""  # output/output_0: the worst
    own_error: float | None = None  # of mine, from its own inputs, against double precision
    golden_error: float | None = None  # of golden, from its own inputs, against double precision
    limit: float | None = None  # what would still have been normal
    basis: str = ""  # of `own_error`: float64, golden (a replay without a reference), formula of a class
    why: Text | None = None  # one sentence

    @property
    def errors(self) -> tuple[float | None, float | None, float | None]:
        """Of mine, of golden, and the limit."""
        return self.own_error, self.golden_error, self.limit


@dataclass(frozen=True, slots=True)
class PairDifference:
    """One tensor of a pair of calls."""

    mine: TensorRecord
    golden: TensorRecord
    metrics: Metrics | None  # None: contents are missing, or shapes do not fit
    picture: str = ""  # where the differences lie: a row of signs, from the first element to the last
    reason: str = ""  # why there are no metrics


@dataclass(frozen=True, slots=True)
class CallPair:
    """Two calls that do the same job; one of them may be missing."""

    mine: Call | None
    golden: Call | None
    how: str = ""  # same: in the same order; equivalent: another name; moved: found elsewhere
    inputs: tuple[PairDifference, ...] = ()
    outputs: tuple[PairDifference, ...] = ()
    judgement: Judgement = Judgement(Verdict.UNKNOWN)


class CannotExecuteError(Exception):
    """The call can't be made here; the message says why."""
