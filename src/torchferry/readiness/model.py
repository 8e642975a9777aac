"""What is known of the operators that a program called: which, with what, from where, how often. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from torchferry.units import ITEM_SIZES

TRACE = "trace"  # the origin of a capture that was read from a profiler's file


class Phase(str, Enum):
    """What the program was doing."""

    SETUP = "setup"  # before the first forward pass: weights are drawn and moved
    DATA = "data"  # a DataLoader was asked for the next batch
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"  # and what is done to gradients before it: clipping, scaling

    @property
    def is_on_host(self) -> bool:
        """Whether a training program does this on the CPU, whatever its device."""
        return self in (Phase.SETUP, Phase.DATA)


@dataclass(frozen=True)
class TensorSpec:
    """A tensor without its contents."""

    dtype: str  # float32
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None  # None: the layout has none, or it is not known
    layout: str = "strided"
    device: str = "cpu"  # its type, without an index

    @property
    def elements(self) -> int:
        """How many there are."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """What a copy of it takes."""
        return self.elements * ITEM_SIZES.get(self.dtype, 4)


@dataclass(frozen=True)
class Special:
    """A value that is no number, text or tensor: a dtype, device, layout, memory format, generator ..."""

    kind: str  # dtype, device, layout, memory_format, complex, generator, or the name of its type
    text: str  # float32, cuda:0, channels_last


Value = TensorSpec | Special | None | bool | int | float | str | tuple["Value", ...]


@dataclass(frozen=True)
class Argument:
    """One argument that was given."""

    name: str
    value: Value


@dataclass(frozen=True)
class Signature:
    """An operator and what it was called with."""

    operator: str  # aten::add.Tensor; the default overload has no suffix
    # in the order of the schema; defaults that were not given are absent
    arguments: tuple[Argument, ...] = ()
    results: tuple[Value, ...] = ()

    @property
    def inputs(self) -> list[TensorSpec]:
        """The tensors among the arguments."""
        return [spec for argument in self.arguments for spec in tensors_in(argument.value)]

    @property
    def outputs(self) -> list[TensorSpec]:
        """The tensors among the results."""
        return [spec for result in self.results for spec in tensors_in(result)]

    @property
    def dtypes(self) -> list[str]:
        """Each dtype of its tensors once, arguments first."""
        return list(dict.fromkeys(spec.dtype for spec in [*self.inputs, *self.outputs]))


@dataclass(frozen=True)
class OperatorSite:
    """Where in the program an operator is called."""

    phase: Phase
    module: str = ""  # layer1.0.conv1; "" outside of every module
    place: str = ""  # train.py:34, the line of the user's code; in the backward pass that of the forward call
    node: str = ""  # in the backward pass: autograd's name for the step, ConvolutionBackward0
    inside: str = ""  # the composite operator that made the call; "" if the program or autograd did


@dataclass(frozen=True)
class Use:
    """Calls of one operator with one signature from one site, folded."""

    signature: Signature
    site: OperatorSite
    calls: int
    seconds: float  # without the operators that it called in turn
    expanded: bool = False  # a composite operator: what it called is in the list, with this one as `inside`
    varied: bool = False  # further calls from this site with other shapes are counted here

    @property
    def operator(self) -> str:
        """Its name: aten::add.Tensor."""
        return self.signature.operator


@dataclass(frozen=True)
class ModuleInfo:
    """One module of the model that ran."""

    path: str  # layer1.0; "" is the model itself
    type: str  # Bottleneck


@dataclass(frozen=True)
class Capture:
    """Everything that one run called."""

    program: str  # the command line, the model's factory, or the trace's file
    origin: str  # program, model or trace
    device: str  # the type of the device that computed: cpu, cuda, npu, meta
    torch: str = ""  # version; "" if it is not known
    steps: int = 0  # of the optimizer
    seconds: float = 0.0  # from the first forward pass to the end, with the capture's own cost
    processes: int = 1
    uses: tuple[Use, ...] = ()
    modules: tuple[ModuleInfo, ...] = ()
    notes: tuple[str, ...] = field(default=())  # keys of readiness/notes.py: what could not be seen

    def judged(self) -> list[Use]:
        """The uses that a device must serve: not those of set-up and data loading, and no composite ones."""
        return [use for use in self.uses if self.runs_on_device(use) and not use.expanded]

    def runs_on_device(self, use: Use) -> bool:
        """Whether the call would be the device's. A run on the CPU, and a trace, tell by the phase: a trace does not
        say where tensors are. Others tell by the tensors."""
        if self.device in ("cpu", "meta") or self.origin == TRACE:
            return not use.site.phase.is_on_host
        specs = [*use.signature.inputs, *use.signature.outputs]
        return any(spec.device == self.device for spec in specs)


def tensors_in(value: Value) -> Iterator[TensorSpec]:
    """The tensors of a value, those of lists included."""
    if isinstance(value, TensorSpec):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from tensors_in(item)
