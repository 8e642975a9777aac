"""What a comparison of one process with several finds: stage by stage of a step, from the batch to the weights after it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchferry.accuracy.compare.layouts import RankLayout
from torchferry.accuracy.model import RecordHeader
from torchferry.text import Text


class StepStage(str, Enum):
    """A part of a step, in the order of the step."""

    BATCH = "batch"  # which samples each rank has
    PARAMETERS = "parameters"  # weights at the start
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"  # up to the gradients of each rank
    REDUCTION = "reduction"  # the gradients that the optimizer reads
    OPTIMIZER = "optimizer"  # its arguments
    UPDATE = "update"  # weights after it


class Outcome(str, Enum):
    """What is said of a stage."""

    FITS = "fits"  # the ranks make up the other side, but for rounding
    PARTS = "parts"  # here they part
    RANDOM = "random"  # here they part, since each draws other random numbers
    FOLLOWS = "follows"  # it differs, as what goes in does
    UNKNOWN = "unknown"  # it can't be compared, and the stage says why


@dataclass(frozen=True)
class Spot:
    """A call, by rank 0 of the side with fewer processes."""

    number: int
    operator: str
    phase: str
    module: str
    place: str


@dataclass(frozen=True)
class StageResult:
    """What is found in one stage of a step."""

    step: int
    stage: StepStage
    outcome: Outcome
    compared: int = 0  # tensors
    why: Text | None = None
    rank: int | None = None  # which parts; None: all, or no single one
    spot: Spot | None = None  # where
    tensor: str = ""  # output/output_0 float32[8,5]
    distance: float | None = None
    limit: float | None = None  # what rounding explains


@dataclass(frozen=True)
class LaidOut:
    """Tensors of one kind whose layout is known from their bytes."""

    role: str  # parameter, gradient, activation
    layout: RankLayout
    count: int
    example: str  # one.up float32[32,12]


@dataclass(frozen=True)
class RankGroup:
    """The records of the processes of one run."""

    path: str
    headers: tuple[RecordHeader, ...]


@dataclass(frozen=True)
class RanksComparison:
    """Two runs of one program with another number of processes, or another layout."""

    many: RankGroup
    few: RankGroup
    division: Text | None  # how the batch is divided
    stages: tuple[StageResult, ...]
    culprit: int | None  # the stage where they part first; None: nowhere
    layouts: tuple[LaidOut, ...] = ()
    notes: tuple[Text, ...] = ()
    seconds: float = 0.0


def first_parting(stages: tuple[StageResult, ...]) -> int | None:
    """The stage to look at first: where they part, rather than where random numbers do."""
    for outcome in (Outcome.PARTS, Outcome.RANDOM):
        for at, each in enumerate(stages):
            if each.outcome is outcome:
                return at
    return None
