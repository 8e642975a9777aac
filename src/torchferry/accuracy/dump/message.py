"""The content of a dump file: the length of a header, the header (Protocol Buffers), the bytes of the tensors.

The header is a `DumpData`: version = 1, dump_time = 2, output = 3, input = 4, op_name = 6. An input has data_type = 1,
format = 2, shape = 3, size = 5, original_shape = 6; an output the same, with size = 6 and original_shape = 7. Inputs'
bytes come first. Imports no torch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

_VERSION = "2.0"
_PLAIN_FORMAT = 2  # ND: no layout of a vendor's own
_DATA_TYPES = {
    "float32": 1, "float16": 2, "int8": 3, "uint8": 4, "int16": 5, "uint16": 6, "int32": 7, "int64": 8, "uint32": 9,
    "uint64": 10, "bool": 11, "float64": 12, "complex64": 16, "complex128": 17, "bfloat16": 27,
}  # fmt: skip
_VARINT, _BYTES = 0, 2
_INPUT_SIZE, _OUTPUT_SIZE = 5, 6


@dataclass(frozen=True)
class DumpedTensor:
    """One tensor of a call, in the order of its indices."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def dump_file(
    name: str, microseconds: int, inputs: Sequence[DumpedTensor], outputs: Sequence[DumpedTensor]
) -> bytes:
    """The whole file."""
    header = b"".join(
        [
            _bytes(1, _VERSION.encode()),
            _number(2, microseconds),
            *(_bytes(3, _described(tensor, _OUTPUT_SIZE)) for tensor in outputs),
            *(_bytes(4, _described(tensor, _INPUT_SIZE)) for tensor in inputs),
            _bytes(6, name.encode()),
        ]
    )
    data = [tensor.data for tensor in (*inputs, *outputs)]
    return b"".join([struct.pack("<Q", len(header)), header, *data])


def _described(tensor: DumpedTensor, size_field: int) -> bytes:
    shape = b"".join(_number(1, length) for length in tensor.shape)
    return b"".join(
        [
            _number(1, _DATA_TYPES.get(tensor.dtype, 0)),
            _number(2, _PLAIN_FORMAT),
            _bytes(3, shape),
            _number(size_field, len(tensor.data)),
            _bytes(size_field + 1, shape),
        ]
    )


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
