"""HDF5's descriptions of element types, dataspaces and attributes, as bytes; how PyTorch's dtypes lie in a file."""

from __future__ import annotations

import struct
from functools import cache

from torchferry.accuracy.model import SIZES

UNDEFINED = 0xFFFFFFFFFFFFFFFF  # HDF5's address of what is not there
_FIXED, _FLOAT, _STRING, _COMPOUND, _ENUM = 0, 1, 3, 6, 8
_SIGNED, _UTF8, _IMPLIED_BIT = 0x08, 0x10, 0x20
_NULL_PADDED = 0x01
_RANKS = 32  # as many dimensions as a dataset may have

# dtype -> the number that ONNX gives it, which the attribute `DataType` holds
ONNX = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
}  # fmt: skip
DTYPE_OF_ONNX = {number: name for name, number in ONNX.items()}

# dtype -> where the sign, the exponent and the fraction lie, and how wide the latter two are
_FLOATS = {"float16": (15, 10, 5), "bfloat16": (15, 7, 8), "float32": (31, 23, 8), "float64": (63, 52, 11)}
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def _described(kind: int, flags: int, size: int, properties: bytes = b"", version: int = 1) -> bytes:
    return struct.pack("<B3sI", kind | version << 4, flags.to_bytes(3, "little"), size) + properties


@cache
def integer(size: int, signed: bool = True) -> bytes:
    """A little-endian integer."""
    return _described(_FIXED, _SIGNED if signed else 0, size, struct.pack("<HH", 0, 8 * size))


@cache
def text(size: int) -> bytes:
    """UTF-8 of so many bytes; HDF5 knows no text of none."""
    return _described(_STRING, _NULL_PADDED | _UTF8, size)


@cache
def floating(dtype: str) -> bytes:
    """A little-endian float with an implied first bit."""
    sign, exponent, width = _FLOATS[dtype]
    properties = struct.pack("<HHBBBBI", 0, sign + 1, exponent, width, 0, exponent, (1 << (width - 1)) - 1)
    return _described(_FLOAT, _IMPLIED_BIT | sign << 8, (sign + 1) // 8, properties)


def compound(members: list[tuple[str, int, bytes]], size: int) -> bytes:
    """Several named values, each at an offset."""
    width = max(1, (size.bit_length() + 7) // 8)
    properties = b"".join(
        name.encode() + b"\0" + offset.to_bytes(width, "little") + kind for name, offset, kind in members
    )
    return _described(_COMPOUND, len(members), size, properties, version=3)


@cache
def truth() -> bytes:
    """A truth value as h5py writes it: an enumeration over a byte."""
    properties = integer(1) + b"FALSE\0TRUE\0" + b"\0\1"
    return _described(_ENUM, 2, 1, properties, version=3)


@cache
def element(dtype: str) -> bytes:
    """How an element of a tensor lies in the file; HDF5 has no word for floats of 8 bits: their bits are kept."""
    if dtype in _FLOATS:
        return floating(dtype)
    if dtype in _PARTS:
        part = floating(_PARTS[dtype])
        size = SIZES[dtype]
        return compound([("r", 0, part), ("i", size // 2, part)], size)
    if dtype == "bool":
        return truth()
    return integer(SIZES[dtype], signed=dtype.startswith("int"))


def dataspace(dims: tuple[int, ...] | None) -> bytes:
    """The dimensions of a dataset; () is one element, None is nothing at all."""
    if dims is None:
        return b"\2\0\0\2"
    if len(dims) > _RANKS:
        raise ValueError(f"{len(dims)} dimensions")
    return struct.pack(f"<BBBB{len(dims)}Q", 2, len(dims), 0, 1 if dims else 0, *dims)


def stored_dims(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions of a tensor's dataset: one of stride 0 has size 1; flat if HDF5 can't have so many."""
    dims = tuple(1 if step == 0 and size else size for size, step in zip(shape, stride, strict=True))
    if len(dims) <= _RANKS:
        return dims
    count = 1
    for size in dims:
        count *= size
    return (count,)
