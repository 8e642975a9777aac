"""What an analysis of performance finds: the interface between detectors and reports. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from torchferry.text import Language, Text

# The record that `ferry profile` writes beside the traces.
PROFILE_FILE = "run.json"
PROFILE_FORMAT = "torchferry-profile"
PROFILE_VERSION = 1

HIGH_SHARE = 0.10  # of the time of a step
MEDIUM_SHARE = 0.03
BOTTLENECK_SHARE = 0.25  # whoever mends less than that has a step that takes nearly as long as before


def in_words(shown: str | Text, language: Language) -> str:
    """Names are the same in every language."""
    return shown if isinstance(shown, str) else shown.in_language(language)


class Impact(Enum):
    """How much time a bottleneck costs."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class Evidence:
    """One thing that a detector saw, added up over all steps that were profiled."""

    what: str | Text  # the operator, kernel, annotation, variable ...; words where it has no name
    detail: str | Text = ""  # shapes, types, formats, values
    place: str = (
        ""  # train.py:40, or train.py:40(main) for a function whose line is not known; empty: not known
    )
    count: int = 0
    seconds: float = 0.0
    share: float = 0.0  # of the time of the steps
    example: float | None = (
        None  # seconds from the trace's beginning to one of them: where to look in a timeline
    )


@dataclass(frozen=True)
class Diagnosis:
    """A bottleneck, its proof and its remedy."""

    id: str
    title: Text
    summary: Text  # one sentence with the figures
    share: float  # of the time of the steps that it takes, 0 to 1
    remedies: tuple[Text, ...]
    evidence: tuple[Evidence, ...] = ()
    gain: float | None = None  # share of the steps' time that the remedy saves; None: can't be estimated
    gain_basis: Text | None = None  # how that was estimated
    at_least: Impact = Impact.LOW  # where the times of this trace do not show what it costs

    @property
    def weight(self) -> float:
        """What there is to win, or else what it takes: a share of the steps' time."""
        return self.share if self.gain is None else self.gain

    @property
    def is_bottleneck(self) -> bool:
        """Whether so much depends on it that it may be called what holds the run up."""
        return self.weight >= BOTTLENECK_SHARE

    @property
    def severity(self) -> Impact:
        """How much it matters, by its weight."""
        if self.weight >= HIGH_SHARE:
            return Impact.HIGH
        by_weight = Impact.MEDIUM if self.weight >= MEDIUM_SHARE else Impact.LOW
        return min(by_weight, self.at_least, key=list(Impact).index)


class TimePart(Enum):
    """What the time of a step goes to. Each moment counts once, in this order of precedence."""

    COMPUTE = "compute"  # the device computes (or the host, where it is the device)
    COMMUNICATION = "communication"  # that no computation covers
    COPY = "copy"  # between host and device, that nothing above covers
    MOVE = "move"  # copies and fills within the device, or between devices
    LOADER = "loader"  # the device waits while the program waits for data
    HOST = "host"  # the device waits while the host calls operators
    OTHER = "other"  # the device waits, and the host does something that the trace does not show


class StepTime(NamedTuple):
    """A step of the training, and what its time went to."""

    number: int
    start: float  # seconds since the trace's beginning
    seconds: float
    parts: dict[TimePart, float]


class OperatorRow(NamedTuple):
    """Calls of one operator with the same shapes and types."""

    operator: str
    shapes: str
    dtypes: str
    calls: int
    host_seconds: float  # without the operators that it called
    device_seconds: (
        float  # of the work that it gave to the device itself; where the host computes: as host_seconds
    )
    place: str = ""
    roofline: float | None = None  # least possible time over the time taken; None: not known


class KernelRow(NamedTuple):
    """Work of the device under one name."""

    name: str
    kind: str  # compute, communication, copy, fill, move
    calls: int
    seconds: float
    operator: str = ""  # that launched most of it


class Span(NamedTuple):
    """A bar of the timeline."""

    lane: str  # the thread or the stream
    name: str
    start: float
    seconds: float
    kind: str  # step, operator, annotation, python, runtime, compute, communication, copy, fill, move, gc; merged: several
    detail: str = ""  # shapes


class MemoryPoint(NamedTuple):
    """Memory of a device at a moment."""

    start: float
    allocated: int
    reserved: int


@dataclass(frozen=True)
class Analysis:
    """Everything that is known of a run."""

    sources: tuple[str, ...]
    device: str  # cuda, npu, mlu ..., cpu
    device_name: str = ""
    torch: str = ""
    rank: int | None = None
    steps: tuple[StepTime, ...] = ()
    seconds: float = 0.0  # of all steps; where there are none, of the trace
    parts: dict[TimePart, float] = field(default_factory=dict)  # seconds, added up
    diagnoses: tuple[Diagnosis, ...] = ()  # the greatest first
    operators: tuple[OperatorRow, ...] = ()
    kernels: tuple[KernelRow, ...] = ()
    timeline: tuple[Span, ...] = ()
    timeline_step: int | None = None  # the step that the timeline shows in full; None: there are no steps
    timeline_left_out: int = 0  # events of that step that no bar of their own shows
    memory: dict[str, tuple[MemoryPoint, ...]] = field(default_factory=dict)  # by device
    memory_limit: int = 0  # bytes; 0: not known
    notes: tuple[Text, ...] = ()  # what was repaired, what could not be looked at and why
    checked: tuple[str, ...] = ()  # the detectors that had what they need
    unchecked: dict[str, Text] = field(default_factory=dict)  # the others, and what they lack
    failed: dict[str, str] = field(default_factory=dict)  # those that broke down, and how
    is_host_only: bool = (
        False  # the operators are the work: the CPU, a simulated device, or no trace of the device
    )
    simulated: bool = False
    command: tuple[str, ...] = ()  # that was profiled, where it is known

    def share(self, part: TimePart) -> float:
        """The share of the steps' time that a part takes."""
        return self.parts.get(part, 0.0) / self.seconds if self.seconds else 0.0
