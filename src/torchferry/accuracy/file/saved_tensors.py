"""Tensors in files of `torch.save` and `numpy.save`: mapped, not loaded; nothing in them is run. No torch."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.accuracy.file.contents import numpy_dtype
from torchferry.accuracy.model import SIZES, TensorRecord
from torchferry.errors import InputError
from torchferry.text import Text

_LONGEST_PICKLE = 1 << 20
_LOCAL_HEADER = 30  # bytes before the name of a member of a zip file
_NAME_LENGTH, _EXTRA_LENGTH = slice(26, 28), slice(28, 30)
_OF_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8",
}  # fmt: skip


class UnreadableTensorError(InputError):
    """The file of one tensor can't be read; the others may be fine."""


@dataclass(frozen=True, slots=True)
class _Storage:
    key: str
    dtype: str
    elements: int


@dataclass(frozen=True, slots=True)
class _Saved:
    storage: _Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def saved_elements(file: Path, tensor: TensorRecord) -> np.ndarray[Any, Any]:
    """The elements of a file, flat, in the order of their indices, in the dtype that `tensor` tells."""
    try:
        dtype, values = _numpy_array(file) if file.suffix == ".npy" else _torch_tensor(file)
    # what zipfile, pickle and numpy raise where a file is damaged
    except Exception as error:
        if isinstance(error, (MemoryError, InputError)):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnreadableTensorError(
            Text(f"{file}: can't be read: {reason}", f"{file}：无法读取：{reason}")
        ) from None
    if values.shape != tensor.shape:
        raise UnreadableTensorError(
            Text(
                f"{file}: its shape is {list(values.shape)}, but its description says {list(tensor.shape)}",
                f"{file}：形状为 {list(values.shape)}，但其描述为 {list(tensor.shape)}",
            )
        )
    flat = np.require(values, requirements=["C", "A"]).reshape(-1)
    return flat if dtype == tensor.dtype else _in_dtype(flat, dtype, tensor.dtype, file)


def _in_dtype(flat: np.ndarray[Any, Any], dtype: str, wanted: str, file: Path) -> np.ndarray[Any, Any]:
    """numpy has no bfloat16, so that it is saved as float32."""
    if wanted == "bfloat16" and dtype in ("float32", "float64"):
        bits = flat.astype(np.float32).view(np.uint32)
        rounded: np.ndarray[Any, Any] = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(flat), np.uint16(0x7FC0), rounded)
    if numpy_dtype(wanted).kind in "fc" and dtype in ("float16", "float32", "float64"):
        return flat.astype(wanted)
    raise UnreadableTensorError(
        Text(
            f"{file}: holds {dtype}, but its description says {wanted}",
            f"{file}：内容为 {dtype}，但其描述为 {wanted}",
        )
    )


def _numpy_array(file: Path) -> tuple[str, np.ndarray[Any, Any]]:
    values = np.load(file, mmap_mode="r", allow_pickle=False)
    if values.dtype.name not in SIZES:
        raise ValueError(f"it holds {values.dtype}, which no tensor can hold")
    return values.dtype.name, values.astype(values.dtype.newbyteorder("="), copy=False)


def _torch_tensor(file: Path) -> tuple[str, np.ndarray[Any, Any]]:
    with zipfile.ZipFile(file) as archive:
        (description,) = (name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl")
        folder = description.removesuffix("data.pkl")
        if archive.getinfo(description).file_size > _LONGEST_PICKLE:
            raise ValueError("it holds more than a tensor")
        saved = _Unpickler(io.BytesIO(archive.read(description))).load()
        if not isinstance(saved, _Saved):
            raise ValueError("it holds no tensor")
        if f"{folder}byteorder" in archive.NameToInfo and archive.read(f"{folder}byteorder") != b"little":
            raise ValueError("its bytes are in the order of another kind of machine")
        place = _place(file, archive.getinfo(f"{folder}data/{saved.storage.key}"))
    size = SIZES[saved.dtype]
    if (
        len(saved.shape) != len(saved.stride)
        or min((*saved.shape, *saved.stride, saved.offset), default=0) < 0
    ):
        raise ValueError("its shape and its strides do not fit")
    dtype = numpy_dtype(saved.dtype)
    if 0 in saved.shape:
        return saved.dtype, np.empty(saved.shape, dtype)
    last = sum((length - 1) * step for length, step in zip(saved.shape, saved.stride, strict=True))
    if (saved.offset + last + 1) * size > place.stop - place.start:
        raise ValueError("its elements are not in the file")
    start = place.start + saved.offset * size
    flat = np.memmap(file, dtype=dtype, mode="r", offset=start, shape=(last + 1,))
    steps = tuple(step * size for step in saved.stride)
    return saved.dtype, np.lib.stride_tricks.as_strided(flat, saved.shape, steps, writeable=False)


def _place(file: Path, info: zipfile.ZipInfo) -> range:
    """Where the bytes of a member lie."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError("it is compressed")
    with file.open("rb") as opened:
        opened.seek(info.header_offset)
        header = opened.read(_LOCAL_HEADER)
        name, extra = (int.from_bytes(header[part], "little") for part in (_NAME_LENGTH, _EXTRA_LENGTH))
        start = info.header_offset + _LOCAL_HEADER + name + extra
        if start + info.file_size > opened.seek(0, io.SEEK_END):
            raise ValueError("it is cut off")
    return range(start, start + info.file_size)


def _rebuilt(
    storage: _Storage, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> _Saved:
    return _Saved(storage, storage.dtype, offset, tuple(shape), tuple(stride))


def _rebuilt_with_dtype(
    storage: _Storage, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], _grad: bool, _hooks: object,
    dtype: str, *_: object,
) -> _Saved:  # fmt: skip
    return _Saved(storage, dtype, offset, tuple(shape), tuple(stride))


def _rebuilt_parameter(data: _Saved, *_: object) -> _Saved:
    return data


# All that may be called; what a file names besides is not looked up.
_CALLABLE: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuilt,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuilt_with_dtype,
    ("torch._utils", "_rebuild_parameter"): _rebuilt_parameter,
    ("collections", "OrderedDict"): OrderedDict,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _CALLABLE:
            return _CALLABLE[module, name]
        if module in ("torch", "torch.storage") and name in _OF_STORAGES:
            return _OF_STORAGES[name]
        if module == "torch" and name in SIZES:
            return name
        raise ValueError(f"it holds {module}.{name}, which is no tensor")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _device, elements = pid
        if kind != "storage" or not isinstance(dtype, str) or not isinstance(elements, int):
            raise ValueError("it holds no tensor")
        return _Storage(str(key), dtype, elements)
