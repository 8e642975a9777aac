"""What NumPy writes into a pickle and into its own files: arrays and numbers, described without NumPy."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from torchferry.checkpoint.model import ITEM_SIZES, Known, Opaque, Storage, Tensor

_DTYPES: Mapping[str, str] = {
    "f8": "float64", "f4": "float32", "f2": "float16", "i8": "int64", "i4": "int32", "i2": "int16", "i1": "int8",
    "u8": "uint64", "u4": "uint32", "u2": "uint16", "u1": "uint8", "b1": "bool", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
_NUMBERS = {
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint64": "Q", "uint32": "I", "uint16": "H", "uint8": "B", "bool": "?",
}  # fmt: skip
# NumPy 2 has moved them.
RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
SCALAR = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
FROM_BUFFER = ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
NAMES = frozenset({*RECONSTRUCT, *SCALAR, *FROM_BUFFER, "numpy.dtype", "numpy.ndarray"})


def dtype_named(text: str) -> str:
    """The dtype of a name as `<f4`; "" for one that tensors have not, and for big-endian numbers."""
    order, code = (text[0], text[1:]) if text[:1] in ("<", ">", "|", "=") else ("<", text)
    return "" if order == ">" else _DTYPES.get(code, "")


def _dtype(node: object) -> str:
    if not isinstance(node, Opaque) or node.class_name != "numpy.dtype" or not node.arguments:
        return ""
    order = node.state[1] if isinstance(node.state, tuple) and len(node.state) > 1 else "<"
    return "" if order == ">" else dtype_named(str(node.arguments[0]))


def number(arguments: tuple[Any, ...]) -> Known | None:
    """What `scalar` makes."""
    if len(arguments) != 2 or not isinstance(arguments[1], bytes):
        return None
    dtype = _dtype(arguments[0])
    letter = _NUMBERS.get(dtype)
    if letter is None or len(arguments[1]) != ITEM_SIZES[dtype]:
        return None
    return Known(f"numpy.{dtype}", struct.unpack(f"<{letter}", arguments[1]))


def rebuilt(state: Any, key: str) -> tuple[Tensor, bytes] | None:
    """The array that `_reconstruct` and its state make."""
    if not isinstance(state, tuple) or len(state) != 5:
        return None
    _, shape, dtype, is_fortran, data = state
    return described(shape, _dtype(dtype), bool(is_fortran), data, key)


def from_buffer(arguments: tuple[Any, ...], key: str) -> tuple[Tensor, bytes] | None:
    """The array that `_frombuffer` makes."""
    if len(arguments) != 4:
        return None
    data, dtype, shape, order = arguments
    return described(shape, _dtype(dtype), order == "F", data, key)


def described(
    shape: Any, dtype: str, is_fortran: bool, data: object, key: str
) -> tuple[Tensor, bytes] | None:
    """An array over these bytes; None where it is not one that a tensor could be."""
    if isinstance(data, str):  # Python 2 knew no difference
        data = data.encode("utf-8", "surrogateescape")
    if not dtype or not isinstance(data, (bytes, bytearray)):
        return None
    tensor = array(tuple(map(int, shape)), dtype, is_fortran, key)
    return (tensor, bytes(data)) if tensor.nbytes == len(data) else None


def array(shape: tuple[int, ...], dtype: str, is_fortran: bool, key: str) -> Tensor:
    """An array, row after row or column after column."""
    strides = contiguous_strides(shape[::-1])[::-1] if is_fortran else contiguous_strides(shape)
    return Tensor(Storage(key, dtype, "cpu", 0), dtype, shape, strides, 0, "cpu", is_array=True)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row after row."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
