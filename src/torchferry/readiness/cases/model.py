"""What a case of one operator consists of, and how it came out. Imports no torch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from torchferry.readiness.model import Special


class Draw(str, Enum):
    """How the contents of a tensor come about."""

    NORMAL = "normal"
    UNIFORM = "uniform"  # from low to high
    INTS = "ints"  # low to high, high itself excluded
    ARANGE = "arange"
    FULL = "full"  # low everywhere
    DEFAULT = "default"  # not said: what suits the operator, see contents.py
    STORED = "stored"  # as recorded: in the case's own data


@dataclass(frozen=True)
class TensorContents:
    """The kind of numbers that a tensor holds."""

    draw: Draw
    low: float = 0.0
    high: float = 1.0
    special: tuple[str, ...] = ()  # nan, inf, -inf: each put in place of some elements
    key: str = ""  # of the stored values


@dataclass(frozen=True)
class TensorInput:
    """A tensor that the operator is given."""

    dtype: str  # float32
    shape: tuple[int, ...]
    contents: TensorContents
    stride: tuple[int, ...] | None = None  # None: contiguous
    offset: int = 0

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """How far its elements lie apart in each dimension, also where nobody has said it."""
        return contiguous(self.shape) if self.stride is None else self.stride

    @property
    def is_plain(self) -> bool:
        """Whether it lies in its memory as new tensors do."""
        return self.stride is None and self.offset == 0

    @property
    def span(self) -> int:
        """How many elements of memory it takes, from the first of the storage to its last."""
        if self.elements == 0:
            return self.offset
        steps = zip(self.shape, self.strides, strict=True)
        return self.offset + 1 + sum((size - 1) * step for size, step in steps)


CaseValue = TensorInput | Special | None | bool | int | float | complex | str | tuple["CaseValue", ...]


class CalleeKind(str, Enum):
    """What sort of thing is called."""

    OPERATOR = "operator"  # torch.ops.aten.max.dim
    FUNCTION = "function"  # torch.nn.functional.gelu, or a method of Tensor
    MODULE = "module"  # a class; it is made first, with --init


@dataclass(frozen=True)
class Callee:
    """The function or operator that a case calls."""

    kind: CalleeKind
    name: str  # as a user writes it: aten::max.dim, torch.max, package.module:Class
    expression: str  # as Python: torch.ops.aten.max.dim; Class
    imports: tuple[str, ...] = ()  # lines that the expression needs
    path: str = ""  # folder that must be on Python's path; "" none
    in_place: bool = False  # writes to its arguments

    @property
    def base_name(self) -> str:
        """Without namespace, module and overload: max of aten::max.dim and of torch.max."""
        if "::" in self.name:
            return self.name.partition("::")[2].partition(".")[0]
        return re.split(r"[.:]", self.name)[-1]

    @property
    def returns_raw_memory(self) -> bool:
        """Whether what it returns holds nothing in particular."""
        return self.base_name.startswith(("empty", "new_empty"))


@dataclass(frozen=True)
class Case:
    """One call of an operator."""

    callee: Callee
    args: tuple[CaseValue, ...] = ()
    kwargs: tuple[tuple[str, CaseValue], ...] = ()
    init: tuple[tuple[str, CaseValue], ...] = ()  # of a module; names that are digits are positions
    seed: int = 0
    # key -> torch.Tensor of one dimension, the storage
    stored: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> list[CaseValue]:
        """Everything that is handed over."""
        return [*self.args, *(value for _, value in self.kwargs)]

    @property
    def tensors(self) -> list[TensorInput]:
        """The tensors among what is handed over."""
        return [tensor for value in self.values for tensor in tensors_in(value)]


@dataclass(frozen=True)
class TrialFacts:
    """What a trial on the CPU has shown of a case."""

    error: str = ""  # what the CPU raised; "" nothing
    differentiable: bool = False
    random: bool = False  # it draws numbers: only their distribution can be compared
    uninitialised: bool = False  # what it returns holds nothing in particular: only shapes can be compared


class CaseVerdict(str, Enum):
    """How a case came out."""

    EQUAL = "equal"
    FALLS_BACK = "falls_back"  # equal, but the device did not compute it
    DIFFERS = "differs"
    RAISES = "raises"
    CRASHES = "crashes"  # the process died
    HANGS = "hangs"  # it took longer than allowed
    INVALID = "invalid"  # the CPU refuses it as well
    NO_DEVICE = "no_device"

    @property
    def is_failure(self) -> bool:
        """Whether it is the device's fault."""
        return self in (CaseVerdict.DIFFERS, CaseVerdict.RAISES, CaseVerdict.CRASHES, CaseVerdict.HANGS)


@dataclass(frozen=True)
class CaseOutcome:
    """What became of a case."""

    kind: CaseVerdict
    check: str = ""  # test_forward, test_backward
    message: str = ""  # the first line of what was raised, or how the results differ
    aspect: str = ""  # of a difference: values, dtype, shape, stride
    operators: tuple[str, ...] = ()  # that fell back
    simulated: bool = True


@dataclass(frozen=True)
class TimedCall:
    """An operator that a case comes down to, and what it is given, argument by argument, as a trace has it."""

    operator: str  # aten::gelu
    is_backward: bool
    dims: list[Any]
    types: list[str]
    strides: list[Any]
    concrete: list[str]


@dataclass(frozen=True)
class Times:
    """How long one call takes, in seconds, of each round that was measured."""

    seconds: Mapping[str, list[float]] = field(default_factory=dict)  # forward, by the type of the device
    backward: Mapping[str, list[float]] = field(default_factory=dict)  # the backward pass alone
    operators: list[TimedCall] = field(default_factory=list)
    names: Mapping[str, str] = field(default_factory=dict)  # type of the device -> what it calls itself
    by_events: list[str] = field(default_factory=list)  # devices whose own events told the time
    error: str = ""  # why nothing was measured
    simulated: bool = False

    @property
    def passes(self) -> dict[str, Mapping[str, list[float]]]:
        """What was measured, by the pass."""
        return {"forward": self.seconds, **({"backward": self.backward} if self.backward else {})}


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor that lies in its memory row by row."""
    steps = [1]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * max(size, 1))
    return tuple(reversed(steps))[-len(shape) :] if shape else ()


def tensors_in(value: CaseValue) -> Iterator[TensorInput]:
    """The tensors of a value, those of lists included."""
    if isinstance(value, TensorInput):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from tensors_in(item)
