"""What the host logs of a run tell about its operators: the interface to reports and to the analyzer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from torchferry.text import Text


class LoggedTensor(NamedTuple):
    """One input or output as the runtime saw it."""

    dtype: str
    format: str  # NCHW, ND ...
    storage: str  # the format in memory, where it is another one; else the same
    shape: tuple[int, ...]


@dataclass(frozen=True)
class LoggedSignature:
    """Calls of one operator with the same tensors and attributes."""

    text: str  # as in the log, from behind the operator's type
    inputs: tuple[LoggedTensor, ...]
    outputs: tuple[LoggedTensor, ...]
    attributes: str
    calls: int
    compiles: int
    cut: bool = False  # the line was too long for the log: others may be equal as far as it goes
    summarized: int = 0  # calls whose line begins as those that the guide's summary counts

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the inputs."""
        return tuple(tensor.shape for tensor in self.inputs)


@dataclass(frozen=True)
class Operator:
    """All that was logged about one type of operator."""

    type: str
    calls: int
    compiles: int
    compile_seconds: float
    recompiles: int  # compiles after the warm-up
    misses: int  # look-ups that found no compiled operator for the shapes at hand
    signatures: tuple[LoggedSignature, ...]  # the most compiled, then the most called first
    is_conversion: bool = False  # it changes a type, a format or a layout
    uncounted: int = 0  # calls with signatures that were too many to keep

    @property
    def shapes(self) -> int:
        """How many different shapes its inputs had."""
        return len({signature.shapes for signature in self.signatures})


class Compile(NamedTuple):
    """One compile of an operator."""

    operator: str
    process: int
    call: int  # how many operators the process had called before
    time: float | None  # seconds since 1970 as if the log's clock were UTC; None: the line has no time
    seconds: float | None  # None: the log does not say how long it took
    signature: LoggedSignature | None  # None: the log does not say of what


class Basis(Enum):
    """How compiles after the warm-up are told from those of the first step."""

    TIME = "time"  # after a moment that the user named
    WARM_UP = "warmup"  # so many seconds after the first operator of the process
    SHAPES = "shapes"  # from the n-th shape of the same operator on
    HALF = "half"  # in the second half of the operators that the process called
    UNKNOWN = "unknown"  # the log has no calls of operators to go by


class LoggedProcess(NamedTuple):
    """One process of the run, with the times of its first and last line."""

    number: int
    calls: int
    first: float | None
    last: float | None


@dataclass(frozen=True)
class OpLog:
    """The logs of a run, added up."""

    sources: tuple[str, ...]
    vendor: str
    operators: tuple[Operator, ...]  # what takes most compile time, or most compiles, first
    recompiles: tuple[Compile, ...]  # after the warm-up, in the order of the log
    basis: Basis
    basis_text: Text
    compiles: int
    compile_seconds: float | None  # None: no line says how long a compile took
    processes: tuple[LoggedProcess, ...]
    bytes_read: int
    unread: dict[str, str] = field(default_factory=dict)  # file -> why it could not be read
    notes: tuple[Text, ...] = ()

    @property
    def calls(self) -> int:
        """How often operators were called."""
        return sum(operator.calls for operator in self.operators)

    @property
    def recompile_seconds(self) -> float:
        """That recompiles took, as far as the log says."""
        return sum(entry.seconds or 0.0 for entry in self.recompiles)

    @property
    def misses(self) -> int:
        """How many look-ups found no compiled operator."""
        return sum(operator.misses for operator in self.operators)

    @property
    def conversions(self) -> tuple[Operator, ...]:
        """Operators that change a type, a format or a layout."""
        return tuple(operator for operator in self.operators if operator.is_conversion)
