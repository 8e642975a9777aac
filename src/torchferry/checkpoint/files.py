"""Finds out how one file is laid out, and reads what it says about its contents."""

from __future__ import annotations

import ast
import json
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from torchferry.checkpoint.classes import array, contiguous_strides, dtype_named
from torchferry.checkpoint.model import Contents, Format, Ordered, Place, Storage, Tensor
from torchferry.checkpoint.torch_files import (
    is_old_tar,
    member_place,
    members_of,
    read_pickles,
    read_tar,
    read_zip,
)
from torchferry.errors import InputError
from torchferry.units import ITEM_SIZES

# Files that hold tensors and nothing else: safetensors, and NumPy's .npy and .npz.

NUMPY_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 100_000_000  # of safetensors, as its library has it
_LONGEST_NUMPY_HEADER = 2**16
_SAFETENSORS_DTYPES: Mapping[str, str] = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
}  # fmt: skip
SAFETENSORS_NAMES = {dtype: name for name, dtype in _SAFETENSORS_DTYPES.items()}


def read_safetensors(path: Path, stream: IO[bytes], size: int) -> Contents:
    """A header in JSON, then the numbers."""
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > min(_LONGEST_HEADER, size - 8):
        raise InputError(
            f"{path}: cut short, or no safetensors file: its header has {length} bytes; fetch it anew"
        )
    header = json.loads(stream.read(length))
    metadata = header.pop("__metadata__", {})
    tree, places = Ordered(), {}
    for name, entry in header.items():
        begin, end = map(int, entry["data_offsets"])
        place = Place(end - begin, 8 + length + begin)
        tree[name] = _safetensor(path, name, entry, place, size)
        places[name] = place
    words = {str(key): str(value) for key, value in metadata.items()}
    return Contents(path, Format.SAFETENSORS, size, tree, places, metadata=words)


def _safetensor(path: Path, name: str, entry: Mapping[str, Any], place: Place, size: int) -> Tensor:
    dtype = _SAFETENSORS_DTYPES.get(entry["dtype"])
    if dtype is None:
        raise InputError(f"{path}: {name} has the dtype {entry['dtype']}, which is unknown here")
    shape = tuple(map(int, entry["shape"]))
    storage = Storage(name, dtype, "cpu", place.size // ITEM_SIZES[dtype])
    tensor = Tensor(storage, dtype, shape, contiguous_strides(shape), 0, "cpu")
    begin = place.offset or 0
    if min(shape, default=0) < 0 or tensor.nbytes != place.size or begin < 8 or begin + place.size > size:
        raise InputError(
            f"{path}: cut short or damaged: the data of {name} does not fit its shape; fetch it anew"
        )
    return tensor


def read_npy(path: Path, stream: IO[bytes], size: int) -> Contents:
    """One array, called after the file."""
    tree = Ordered({path.stem: _npy(path, stream, size, "0")})
    return Contents(path, Format.NUMPY, size, tree, {"0": Place(size, 0)})


def read_npz(path: Path, stream: IO[bytes], size: int) -> Contents:
    """Arrays in a zip archive."""
    tree, places = Ordered(), {}
    with zipfile.ZipFile(stream) as archive:
        for name, member in members_of(path, archive).items():
            with archive.open(member) as data:
                tree[name.removesuffix(".npy")] = _npy(path, data, member.file_size, name)
            places[name] = member_place(stream, member)
    return Contents(path, Format.NUMPY, size, tree, places)


def _npy(path: Path, stream: IO[bytes], size: int, key: str) -> Tensor:
    start = stream.read(8)
    if start[:6] != NUMPY_MAGIC:
        raise InputError(f"{path}: damaged: {key} is no array of NumPy; fetch it anew")
    form = "<H" if start[6] == 1 else "<I"
    (length,) = struct.unpack(form, stream.read(struct.calcsize(form)))
    if length > _LONGEST_NUMPY_HEADER:
        raise InputError(f"{path}: damaged: the header of {key} has {length} bytes; fetch it anew")
    header = ast.literal_eval(stream.read(length).decode("latin-1").strip())
    dtype = dtype_named(header["descr"]) if isinstance(header["descr"], str) else ""
    if not dtype:
        raise InputError(f"{path}: {key} holds {header['descr']}, which no tensor does; save numbers alone")
    begin = len(start) + struct.calcsize(form) + length
    shape = tuple(map(int, header["shape"]))
    described = array(shape, dtype, bool(header["fortran_order"]), key)
    if begin % ITEM_SIZES[dtype] or min(shape, default=0) < 0 or begin + described.nbytes > size:
        raise InputError(
            f"{path}: cut short or damaged: the data of {key} does not fit its shape; fetch it anew"
        )
    storage = Storage(key, dtype, "cpu", size // ITEM_SIZES[dtype])  # the header lies before the first number
    offset = begin // ITEM_SIZES[dtype]
    return Tensor(storage, dtype, shape, described.strides, offset, "cpu")


_START = 512
_TAR_MAGIC = slice(257, 262)
_PACKED = {
    b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7-Zip",
    b"Rar!": "RAR",
}  # fmt: skip
_OTHERS = {
    b"\x89HDF": "an HDF5 file, as Keras writes",
    b"GGUF": "a GGUF file of llama.cpp",
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself (git lfs pull fetches it)",
    b"PK\x05\x06": "an empty zip archive",
    b"{": "JSON, not a checkpoint: perhaps a server's error instead of the file",
}


def read_file(path: Path) -> Contents:
    """What is inside; of tensors only the descriptions are read, however large the file is."""
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        start = stream.read(_START)
        stream.seek(0)
        try:
            contents = _read(path, stream, size, start)
        except InputError:
            raise
        except Exception as error:  # whatever a damaged or hostile file makes the standard library raise
            raise damaged(path, error) from None
    if contents is None:
        raise InputError(
            f"{path}: {_what_else(start)}; give a file of torch.save, TorchScript, safetensors or NumPy"
        )
    return contents


def damaged(path: Path, error: Exception) -> InputError:
    """What to say when a part of a file can't be read."""
    text = str(error).splitlines()[0][:200] if str(error) else ""
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return InputError(f"{path}: damaged, or no checkpoint ({reason}); save or fetch it anew")


def _read(path: Path, stream: IO[bytes], size: int, start: bytes) -> Contents | None:
    if start.startswith(b"PK\x03\x04"):
        first = start[30 : 30 + int.from_bytes(start[26:28], "little")]
        return read_npz(path, stream, size) if first.endswith(b".npy") else read_zip(path, stream, size)
    if start[8:9] == b"{" and b"\0" in start[:8]:
        return read_safetensors(path, stream, size)
    if start.startswith(b"\x80"):
        return read_pickles(path, stream, size)
    if start.startswith(NUMPY_MAGIC):
        return read_npy(path, stream, size)
    if start[_TAR_MAGIC] == b"ustar" and is_old_tar(stream):
        return read_tar(path, stream, size)
    return None


def _opened(path: Path) -> IO[bytes]:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{path}: not a file; give a checkpoint file")
        return open(path, "rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: can't be read ({reason}); check the path") from None


def _what_else(start: bytes) -> str:
    if not start.strip(b"\0"):
        return (
            "an empty file"
            if not start
            else "nothing but zeros at its beginning: it was never written to the end"
        )
    if start.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page, not a checkpoint: the download went wrong"
    if start[_TAR_MAGIC] == b"ustar":
        return "a tar archive; unpack it first"
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            return f"compressed with {name}; unpack it first"
    return next(
        (name for magic, name in _OTHERS.items() if start.startswith(magic)),
        "no checkpoint that is known here",
    )
