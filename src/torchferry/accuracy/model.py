"""What is known of a recorded run: its operators in order, and the tensors that went in and came out. No torch."""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, TypeVar, overload

from torchferry.readiness.model import Special
from torchferry.units import ITEM_SIZES

# HDF5 and the statistics have no form for these.
_NOT_RECORDED = {"float8_e8m0fnu", "qint8", "quint8", "qint32"}
SIZES = {dtype: size for dtype, size in ITEM_SIZES.items() if dtype not in _NOT_RECORDED}
INPUT, OUTPUT = "input", "output"
# in the place of operators: what a module answered, and gradients of what it was given and answered
MODULE, OUTPUT_GRADIENT, INPUT_GRADIENT = "module", "output_gradient", "input_gradient"
Slices = tuple[slice, ...]  # a part of a tensor
Item = TypeVar("Item")


class LazySequence(Sequence[Item]):
    """A sequence whose items are made when they are asked for."""

    @abstractmethod
    def _make(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._make(each) for each in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        return self._make(at)


class Kept(str, Enum):
    """What a record keeps of each tensor."""

    STATISTICS = "statistics"
    TENSORS = "tensors"
    INPUTS = "inputs"  # tensors of the inputs, statistics of the outputs


@dataclass(frozen=True, slots=True)
class Statistics:
    """What one pass over a tensor tells. Minimum to root mean square are of the finite elements; 0 if there are none."""

    count: int
    nans: int
    infinities: int
    zeros: int
    minimum: float
    maximum: float
    mean: float
    rms: float
    checksum: int  # of the bytes: equal numbers mean equal bits

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return max(abs(self.minimum), abs(self.maximum))

    @property
    def norm(self) -> float:
        """Of the finite elements, as a vector."""
        return self.rms * math.sqrt(self.count - self.nans - self.infinities)


ROW = struct.Struct("<4Q4dQ")  # the figures of Statistics, as they lie in memory and in a file
figures_in = attrgetter(*Statistics.__dataclass_fields__)  # all of them, in this order


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
    worst: int  # position of the element with the largest difference, in the order of the file; -1: none

    @property
    def is_equal(self) -> bool:
        """Whether every element is the same."""
        return self.equal == self.count


class KeptPart(NamedTuple):
    """Slices of a large tensor, evenly spaced: they alone are in the file, one after the other."""

    offset: int  # where their bytes lie in the file
    dimension: int  # of the tensor without its repetitions, along which they are cut
    step: int  # of so many slices, the first is kept
    slices: int  # that are kept


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor that went into a call or came out of it."""

    name: str  # input/self, input/tensors/tensors_0, output/output_0; output/self: an argument that was written to
    dtype: str  # float32
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str  # cuda:0
    role: str = ""  # parameter, buffer
    content: int = 0  # equal numbers in one record: the same memory with the same contents; 0: not known
    offset: int | None = None  # where its bytes lie in the file; None: they were not kept
    is_dense: bool = True  # its bytes lie in the order of its memory; otherwise in the order of its indices
    unread: str = ""  # why its contents are not known: uninitialised, overwritten, meta, a class of tensors
    statistics: Statistics | None = None
    part: KeptPart | None = None  # what is kept in the place of all elements; then `offset` is None

    @property
    def kept_part(self) -> TensorRecord | None:
        """What is kept of it, as a tensor by itself."""
        part = self.part
        if part is None:
            return None
        dims = self.dims
        shape = (*dims[: part.dimension], part.slices, *dims[part.dimension + 1 :])
        stride = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
        return replace(
            self,
            shape=shape,
            stride=stride,
            is_dense=True,
            offset=part.offset,
            statistics=None,
            part=None,
        )

    @property
    def dims(self) -> tuple[int, ...]:
        """Its shape in the file: a dimension of stride 0 repeats one element."""
        pairs = zip(self.shape, self.stride, strict=True)
        return tuple(1 if step == 0 and size else size for size, step in pairs)

    @property
    def elements(self) -> int:
        """How many there are in the file."""
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        """What it takes in the file."""
        return self.elements * SIZES[self.dtype]


@dataclass(frozen=True, slots=True)
class TensorRef:
    """In the place of an argument: the input with this number."""

    index: int


Value = None | bool | int | float | str | Special | TensorRef | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class RandomState:
    """What a random operator drew its numbers from."""

    device: str
    offset: int  # where the generator's state lies in the file
    nbytes: int


@dataclass(frozen=True, slots=True)
class Call:
    """One operator that was executed."""

    number: int  # the first is 1; in the order of execution
    operator: str  # aten::add.Tensor
    step: int  # the first is 1
    phase: str  # forward, backward, optimizer
    model: str = ""  # ResNet; the second one of a type is ResNet#2
    module: str = ""  # layer1.0.conv1, a path in the model
    place: str = ""  # train.py:31
    node: str = ""  # ConvolutionBackward0
    arguments: tuple[tuple[str, Value], ...] = ()  # by the schema's names, in its order; only those given
    inputs: tuple[TensorRecord, ...] = ()  # as they were before the call
    outputs: tuple[TensorRecord, ...] = ()  # after it: results, then arguments that were written to
    results: Value = None  # what the call answered: TensorRef counts outputs
    random: RandomState | None = None

    @property
    def group(self) -> str:
        """The name of its operator in the file: letters, digits and _ alone, as vendors' tools want it."""
        return group_name(self.operator)


def kept_nbytes(tensor: TensorRecord) -> int:
    """How many bytes of a tensor are in the file, if it is the only one that has them."""
    kept = tensor.kept_part or tensor
    return 0 if kept.offset is None else kept.nbytes


def has_parts(call: Call) -> bool:
    """Whether large tensors of a call were kept in part."""
    return any(each.part is not None for each in (*call.inputs, *call.outputs))


@lru_cache(maxsize=10_000)
def group_name(operator: str) -> str:
    """add_Tensor for aten::add.Tensor; operators of other libraries keep the library's name."""
    plain = operator.removeprefix("aten::").removesuffix(".default")
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in plain)


@dataclass(frozen=True)
class RecordHeader:
    """What a record is of."""

    kept: Kept
    program: str  # how it was called
    device: str  # the type of the device that computed: cuda, npu, cpu; "": unknown
    torch: str
    rank: int = 0
    world: int = 1
    vendor: str = ""  # whose device it was; with `simulated`, which
    simulated: bool = False
    replayed: str = ""  # the record whose inputs the operators were given
    selected: str = ""  # in words: the options by which calls were left out
    notes: tuple[str, ...] = ()  # compiled: code that can't be seen inside was run; ...
    complete: bool = True  # the recorder ended the file itself
    in_part: str = ""  # in words: of which tensors only slices were kept
    modules_only: bool = False  # its calls are those of modules, in the place of operators
    apis: bool = False  # its calls are those of functions and modules, as msprobe dumps them
    options: str = ""  # of `ferry record` that repeat it besides its vendor: --seed 0 --nproc-per-node 2

    @property
    def is_overview(self) -> bool:
        """Whether it says where two runs part, and not which operator is wrong."""
        return self.kept is not Kept.TENSORS or self.modules_only
