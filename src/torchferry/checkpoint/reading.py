"""Finds out how a checkpoint file is laid out, and reads what it says about its contents."""

from __future__ import annotations

import json
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from torchferry.checkpoint.model import ITEM_SIZES, Contents, Format, Ordered, Place, Storage, Tensor
from torchferry.checkpoint.unpickling import Bounded, Reader
from torchferry.errors import InputError

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LONGEST_HEADER = 100_000_000  # of safetensors, as its library has it
_LOCAL_HEADER = struct.Struct(
    "<26xHH"
)  # of a member of a zip archive: the lengths of its name and its extra field
_SAFETENSORS_DTYPES: Mapping[str, str] = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
}  # fmt: skip
SAFETENSORS_NAMES = {dtype: name for name, dtype in _SAFETENSORS_DTYPES.items()}


def read(path: Path) -> Contents:
    """What is inside; of tensors only the descriptions are read, however large the file is."""
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        start = stream.read(16)
        stream.seek(0)
        try:
            if start.startswith(b"PK\x03\x04"):
                return _read_zip(path, stream, size)
            if len(start) >= 9 and start[8:9] == b"{":
                return _read_safetensors(path, stream, size)
            if start.startswith(b"\x80"):
                return _read_pickles(path, stream, size)
        except InputError:
            raise
        except Exception as error:  # whatever a damaged or hostile file makes the standard library raise
            raise InputError(
                f"{path}: damaged, or no checkpoint ({_reason(error)}); save or fetch it anew"
            ) from None
    raise InputError(f"{path}: {_what_else(start)}; give a file of torch.save, TorchScript or safetensors")


def _opened(path: Path) -> IO[bytes]:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{path}: not a file; give a checkpoint file")
        return open(path, "rb")
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}); check the path") from None


def _reason(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _what_else(start: bytes) -> str:
    if not start:
        return "an empty file"
    if start.startswith((b"version https://git-lfs", b"version ")):
        return "a pointer of Git LFS, not the file itself (git lfs pull fetches it)"
    if start.lstrip().startswith((b"<!DOCTYPE", b"<html", b"<?xml")):
        return "a web page, not a checkpoint: the download went wrong"
    if start.startswith(b"\x1f\x8b"):
        return "compressed with gzip; unpack it first"
    if start.startswith(b"\x89HDF"):
        return "an HDF5 file"
    return "no checkpoint that is known here"


def _read_zip(path: Path, stream: IO[bytes], size: int) -> Contents:
    with zipfile.ZipFile(stream) as archive:
        members = {member.filename: member for member in archive.infolist()}
        pickled = next((name for name in members if name.split("/", 1)[-1] == "data.pkl"), None)
        if pickled is None:
            raise InputError(
                f"{path}: a zip archive, but not of torch.save: it has no data.pkl; unpack it first"
            )
        folder = pickled.removesuffix("data.pkl")
        with archive.open(pickled) as data:
            reader = Reader(Bounded(data, members[pickled].file_size))
            tree = reader.load()
        places = {
            name.removeprefix(f"{folder}data/"): _member_place(stream, member)
            for name, member in members.items()
            if name.startswith(f"{folder}data/")
        }
        order = f"{folder}byteorder"
        is_big = order in members and archive.read(order)[:8] == b"big"
    is_script = (
        any(name.startswith(f"{folder}code/") for name in members) or f"{folder}constants.pkl" in members
    )
    form = Format.TORCHSCRIPT if is_script else Format.ZIP
    return Contents(path, form, size, tree, places, tuple(reader.globals), is_big_endian=is_big)


def _member_place(stream: IO[bytes], member: zipfile.ZipInfo) -> Place:
    if member.compress_type != zipfile.ZIP_STORED:
        return Place(member.file_size, None, member.filename)
    stream.seek(member.header_offset)
    header = stream.read(30)
    name_length, extra_length = _LOCAL_HEADER.unpack(header)
    return Place(member.file_size, member.header_offset + 30 + name_length + extra_length, member.filename)


def _read_pickles(path: Path, stream: IO[bytes], size: int) -> Contents:
    first = Reader(Bounded(stream, size)).load()
    if first != _LEGACY_MAGIC:
        stream.seek(0)
        reader = Reader(Bounded(stream, size))
        return Contents(path, Format.PICKLE, size, reader.load(), {}, tuple(reader.globals))
    Reader(Bounded(stream, size)).load()  # the version of the layout
    about: Any = Reader(Bounded(stream, size)).load()
    reader = Reader(Bounded(stream, size))
    tree = reader.load()
    keys: Any = Reader(Bounded(stream, size)).load()
    places = {}
    for key in keys:
        (elements,) = struct.unpack("<q", stream.read(8))
        count = elements * ITEM_SIZES.get(reader.storages[str(key)].dtype, 0)
        if elements < 0 or stream.tell() + count > size:
            raise InputError(f"{path}: cut short: storage {key} ends after the file; save or fetch it anew")
        places[str(key)] = Place(count, stream.tell())
        stream.seek(count, os.SEEK_CUR)
    is_big = isinstance(about, dict) and about.get("little_endian") is False
    return Contents(path, Format.LEGACY, size, tree, places, tuple(reader.globals), is_big_endian=is_big)


def _read_safetensors(path: Path, stream: IO[bytes], size: int) -> Contents:
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > min(_LONGEST_HEADER, size - 8):
        raise InputError(
            f"{path}: cut short, or no safetensors file: its header has {length} bytes; fetch it anew"
        )
    header = json.loads(stream.read(length))
    metadata = header.pop("__metadata__", {})
    tree, places = Ordered(), {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
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
    if tensor.nbytes != place.size or place.size < 0 or (place.offset or 0) + place.size > size:
        raise InputError(
            f"{path}: cut short or damaged: the data of {name} does not fit its shape; fetch it anew"
        )
    return tensor


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row after row."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
