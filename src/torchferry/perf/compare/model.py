"""What a comparison of two runs finds: the interface between the matching and the reports. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from torchferry.perf.model import TimePart
from torchferry.text import Text


class MatchKind(Enum):
    """How an operator of one run was found in the other; the first that holds."""

    EXACT = "exact"  # the same name, shapes and types
    NAME = "name"  # the same name at the same turn of the program, with other shapes or types
    EQUIVALENT = "equivalent"  # another operator that does the same: convolution and convolution_overrideable
    CALLER = "caller"  # other operators under the same caller: aten::addmm and aten::mm in one aten::linear
    KERNEL = "kernel"  # work of the device that no operator is known for, under the same name
    NONE = "none"  # in one of the runs only


class Measure(Enum):
    """What the seconds of a comparison's side are."""

    DEVICE = "device"  # the time of the work that the operator gave to the device
    HOST = "host"  # the time of the operator on the host, without the operators that it called


class Cost(NamedTuple):
    """What an operator costs in one step of a run."""

    calls: float = 0.0
    seconds: float = 0.0  # as the Side's measure says
    host_seconds: float = 0.0  # on the host, without the operators that it called
    kernels: tuple[str, ...] = ()  # the work that took longest, at most three names


class Side(NamedTuple):
    """One of the two runs."""

    sources: tuple[str, ...]
    device: str  # cuda, npu ..., cpu
    device_name: str
    torch: str
    rank: int | None
    measure: Measure
    steps: int  # that the figures are divided by; 1 where the run does not tell steps apart
    has_steps: bool
    step_seconds: float  # the time of a step
    work_seconds: float  # the measure of all operators and of work without operator, per step
    parts: dict[TimePart, float]  # seconds per step
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True)
class OperatorPair:
    """Calls that are the same in both runs, or are in one of them only."""

    operator: (
        str  # its name in the run that is compared, or else in the baseline; a kernel's for Match.KERNEL
    )
    shapes: str
    dtypes: str
    match: MatchKind
    baseline: Cost | None  # None: not in the baseline
    compared: Cost | None  # None: in the baseline only
    baseline_operator: str = ""  # where it goes by another name there
    baseline_shapes: str = ""  # where they are others
    baseline_dtypes: str = ""
    place: str = ""  # a line of the program, where one of the runs recorded it

    @property
    def more(self) -> float:
        """Seconds per step that it costs more than in the baseline; less than 0: that it saves."""
        return (self.compared.seconds if self.compared else 0.0) - (
            self.baseline.seconds if self.baseline else 0.0
        )

    @property
    def ratio(self) -> float | None:
        """Compared over baseline; None where one of them is missing or took no time."""
        if self.baseline is None or self.compared is None or self.baseline.seconds <= 0:
            return None
        return self.compared.seconds / self.baseline.seconds


@dataclass(frozen=True)
class RunComparison:
    """What a comparison of two runs finds."""

    baseline: Side
    compared: Side
    pairs: tuple[OperatorPair, ...]  # in both; what costs most more than in the baseline first
    only_baseline: tuple[OperatorPair, ...]  # the greatest first
    only_compared: tuple[OperatorPair, ...]
    notes: tuple[Text, ...] = ()
    matched: dict[MatchKind, tuple[float, float]] = field(default_factory=dict)
    # share of the work of the baseline, and of the run that is compared, that was matched so

    @property
    def ratio(self) -> float | None:
        """The time of a step over that of the baseline's; 2: twice as slow."""
        return self.compared.step_seconds / self.baseline.step_seconds if self.baseline.step_seconds else None

    @property
    def work_ratio(self) -> float | None:
        """The time of the work alone over that of the baseline's."""
        return self.compared.work_seconds / self.baseline.work_seconds if self.baseline.work_seconds else None

    @property
    def matched_shares(self) -> tuple[float, float]:
        """The shares of the baseline's work, and of the compared run's, that have a counterpart."""
        found = [shares for match, shares in self.matched.items() if match is not MatchKind.NONE]
        return sum(share for share, _ in found), sum(share for _, share in found)
