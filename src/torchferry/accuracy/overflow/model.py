"""What a check for overflow finds: the operators at which numbers stopped being finite, and those before. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from torchferry.accuracy.model import Statistics
from torchferry.settings import decode

SUFFIX = ".overflow.json"
HALF_LIMIT = 65504.0  # the largest number of float16
HALF_ZERO = 2.0**-25  # what is smaller than this becomes 0 in float16
# Why an event is what it is.
LOWEST = "lowest"  # a mask of a dtype's lowest number was added
TABLE = "table"  # the logarithm of 0 in a table or mask that no gradient flows through
GIVEN = "given"  # the first tensor with NaN that was met was made by none of the operators seen


class OverflowKind(str, Enum):
    """What an operator made of its inputs."""

    NAN = "nan"  # though there was none in its inputs
    INFINITE = "infinite"  # though its inputs were finite
    HALF = "half"  # beyond what float16 holds, though its inputs were not


class Standing(str, Enum):
    """What an overflow means for the training."""

    FOUND = "found"
    SKIPPED = "skipped"  # in scaled gradients; the GradScaler skipped the step and lowered its scale
    INTENDED = "intended"  # a mask, a table: it is meant to be infinite, as far as can be told


class End(str, Enum):
    """How the check of a process ended."""

    FOUND = "found"  # and the program was ended
    STEPS = "steps"  # so many as were asked for
    PROGRAM = "program"  # the program ended by itself, or was ended
    UNFINISHED = "unfinished"  # this was written in the middle: the process was killed


@dataclass(frozen=True)
class TensorFigures:
    """What is known of a tensor of a call."""

    name: str  # input/self, output/output_0
    dtype: str
    shape: tuple[int, ...]
    statistics: Statistics | None = None  # None: it has no numbers that could overflow, or was not looked at

    @property
    def finite(self) -> bool:
        """Whether all of it is, as far as is known."""
        return self.statistics is None or not (self.statistics.nans or self.statistics.infinities)


@dataclass(frozen=True)
class CallFigures:
    """One call of an operator, with figures of its tensors."""

    number: int  # in the order of execution, the first is 1
    operator: str
    step: int
    phase: str
    model: str = ""
    module: str = ""
    place: str = ""
    node: str = ""
    inputs: tuple[TensorFigures, ...] = ()
    outputs: tuple[TensorFigures, ...] = ()


@dataclass(frozen=True)
class OverflowEvent:
    """A call that made what is not finite."""

    kind: OverflowKind
    call: CallFigures
    standing: Standing = Standing.FOUND
    why: str = ""  # LOWEST, TABLE: it is intended; GIVEN
    before: tuple[CallFigures, ...] = ()  # the last calls before it, the nearest last
    scale: float | None = None  # of the loss, where a GradScaler scaled it
    record: str = ""  # the file with its inputs; "": they were not saved
    unsaved: tuple[str, ...] = ()  # inputs that had been overwritten when it was found
    time: float = 0.0  # of the clock: which process was first


@dataclass(frozen=True)
class Largest:
    """The value that came closest to the limit of float16."""

    value: float
    call: CallFigures


@dataclass(frozen=True)
class Underflow:
    """The results of an operator of which float16 would turn the most into zeros."""

    share: float  # of the elements that are not 0
    call: CallFigures


@dataclass(frozen=True)
class OverflowFindings:
    """What the check of one process found."""

    program: str
    device: str
    torch: str
    rank: int = 0
    world: int = 1
    steps: int = 0  # that were complete
    operators: int = 0  # that were checked
    end: End = End.UNFINISHED
    checks_half: bool = False
    events: tuple[OverflowEvent, ...] = ()
    skipped_steps: int = 0  # by a GradScaler
    largest: Largest | None = None
    underflow: tuple[Underflow, ...] = ()
    notes: tuple[str, ...] = field(default=())  # compiled, higher_order

    @property
    def first(self) -> OverflowEvent | None:
        """The overflow that is to be looked at; None: there is none."""
        return next((event for event in self.events if event.standing is Standing.FOUND), None)


def load(path: Path) -> OverflowFindings:
    """What a process has left."""
    return decode(OverflowFindings, path.read_text("utf-8"))
