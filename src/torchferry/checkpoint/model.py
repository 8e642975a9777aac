"""What is known of a checkpoint file: the tree that was saved, with tensors described and classes only named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from torchferry.units import ITEM_SIZES

SPARSE = "torch._utils._rebuild_sparse_tensor"  # what a sparse tensor is called in a pickle

DTENSOR = "torch.distributed.tensor.DTensor"  # of which a file has only what one process held
LOCAL_PART = "_local_tensor"


class FileFormat(Enum):
    """How a file is laid out."""

    ZIP = "zip"  # torch.save since 1.6
    LEGACY = "legacy"  # torch.save before, or asked not to use zip
    TORCHSCRIPT = "torchscript"
    SAFETENSORS = "safetensors"
    PICKLE = "pickle"  # of the standard library
    NUMPY = "numpy"  # .npy and .npz
    SHARDED = "sharded"  # several files, and an index that says which weight is in which
    DISTRIBUTED = "distributed"  # a folder of torch.distributed.checkpoint


@dataclass(frozen=True)
class Storage:
    """The memory that tensors are parts of, by the name of its data in the file."""

    key: str
    dtype: str
    device: str  # where it was when it was saved, as cuda:0
    elements: int
    # Where it begins in the data of that name; old files have storages that are parts of others.
    first: int = 0


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of a checkpoint, without its elements."""

    storage: Storage
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    device: str
    requires_grad: bool = False
    is_parameter: bool = False
    is_plain: bool = True  # False: quantized; its numbers alone are not the tensor
    is_array: bool = False  # of NumPy

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.elements * ITEM_SIZES.get(self.dtype, 0)

    def as_parameter(self, requires_grad: bool) -> TensorEntry:
        return replace(self, is_parameter=True, requires_grad=requires_grad)


@dataclass(frozen=True)
class Global:
    """A name that a pickle asks for; it is never looked up."""

    module: str
    name: str

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Known:
    """A value that is no tensor and does nothing when it is made: torch.Size, torch.device, a number of NumPy."""

    name: str
    arguments: tuple[object, ...]


class Ordered(dict[object, object]):
    """An OrderedDict, with what PyTorch hangs onto a state dict."""

    metadata: object = None


@dataclass(eq=False)
class Opaque:
    """An object of a class that is only named: what it was made of and what was put into it."""

    class_name: str
    arguments: tuple[object, ...] = ()
    state: object = None
    items: list[object] = field(default_factory=list)
    entries: dict[object, object] = field(default_factory=dict)

    def append(self, item: object) -> None:
        self.items.append(item)

    def extend(self, items: list[object]) -> None:
        self.items.extend(items)

    def add(self, item: object) -> None:
        self.items.append(item)

    def __setitem__(self, key: object, value: object) -> None:
        self.entries[key] = value


@dataclass(frozen=True)
class Piece:
    """A part of a tensor, which was saved by itself within a file."""

    path: Path
    offset: int
    size: int
    starts: tuple[int, ...]  # where the part begins in the whole


@dataclass(frozen=True)
class StoragePlace:
    """Where the bytes of a storage are."""

    size: int  # as it is read
    offset: int | None = None  # in the file; None: compressed, `member` must be unpacked
    member: str = ""
    checksum: int = 0  # CRC-32 of the bytes; 0: the file has none
    path: Path | None = None  # where it is not the checkpoint's own
    data: bytes | None = None  # the bytes themselves
    pieces: tuple[Piece, ...] = ()  # what the bytes are to be put together from


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: a file, or a folder of files that belong together."""

    path: Path
    format: FileFormat
    size: int
    tree: object
    places: Mapping[str, StoragePlace]
    globals: tuple[Global, ...] = ()  # that its pickle asks for, each once
    metadata: Mapping[str, str] = field(default_factory=dict)  # of a safetensors file
    is_big_endian: bool = False
    others: tuple[Path, ...] = ()  # checkpoints that lie beside it in the folder that was given


# What is to be done to a checkpoint, and what was; is needed to speak of it.


@dataclass(frozen=True)
class Repair:
    """What is to be done."""

    only: str = ""
    strip: tuple[str, ...] = ()
    devices: tuple[tuple[str, str], ...] = ()  # from, to; "*" is any
    allow_pickle: bool = False
    force: bool = False
    rename: tuple[tuple[str, str], ...] = ()  # what names begin with, what they shall begin with
    dtype: str = ""
    plain: bool = False  # objects become dictionaries


@dataclass(frozen=True)
class Repaired:
    """What was done to repair a checkpoint."""

    output: Path
    size: int
    tensors: int
    renamed: tuple[tuple[str, str, int], ...]  # old beginning, new one, names that had it
    moved: tuple[tuple[str, str, int], ...]  # from, to, storages
    left_out: tuple[str, ...]  # parts of the file that were not taken
    ran_code: bool
    cast: Cast | None = None
    made_plain: tuple[tuple[str, str], ...] = ()  # name, class
    written_twice: int = 0  # weights that share their numbers, in a format that can't say so
    lost_metadata: bool = False
    is_state_dict: bool = False  # nothing but weights by their names


@dataclass(frozen=True)
class Cast:
    """Weights that have another dtype now."""

    dtype: str
    tensors: int
    infinite: int  # numbers that were finite and are too large for it
