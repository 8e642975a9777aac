"""Files of torch.save: the zip archive of today, and the pickles one after another of before 1.6."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Any

from torchferry.checkpoint.model import Contents, Format, Global, Place, Storage, Tensor
from torchferry.checkpoint.unpickling import STORAGE_DTYPES, Bounded, Reader
from torchferry.errors import InputError
from torchferry.units import ITEM_SIZES

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
# Of a member of a zip archive: the lengths of its name and its extra field.
_LOCAL_HEADER = struct.Struct("<26xHH")
_LONGEST_PACKED = 2**26  # of a compressed pickle: a small file must not become a large one
_SHOWN = 3


class Window(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, stream: IO[bytes], begin: int, size: int) -> None:
        self._stream, self._begin, self._size, self._at = stream, begin, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._stream.seek(self._begin + self._at)
        data = self._stream.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def members_of(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name; what one program takes from two of a name, another would not."""
    members = {member.filename: member for member in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise InputError(f"{path}: damaged: a zip archive with two members of one name; fetch it anew")
    return members


def read_zip(path: Path, stream: IO[bytes], size: int, begin: int = 0, prefix: str = "") -> Contents:
    """A zip archive of this size, which may begin within a file; the prefix is for the names of its storages."""
    window: Any = Window(stream, begin, size)
    whole = io.BufferedReader(window)  # all reads go through it: it would not notice a seek beneath it
    with zipfile.ZipFile(whole) as archive:
        members = members_of(path, archive)
        pickled = next((name for name in members if name.split("/", 1)[-1] == "data.pkl"), None)
        if pickled is None:
            raise InputError(
                f"{path}: a zip archive, but not of torch.save{_inside(members)}; unpack it first"
            )
        folder = pickled.removesuffix("data.pkl")
        reader = _reader(archive, whole, members[pickled], prefix)
        tree = reader.load()
        places = {
            prefix + name.removeprefix(f"{folder}data/"): member_place(whole, member, begin)
            for name, member in members.items()
            if name.startswith(f"{folder}data/")
        }
        order = f"{folder}byteorder"
        is_big = order in members and _opened(archive, whole, members[order]).read(8) == b"big"
    is_script = (
        any(name.startswith(f"{folder}code/") for name in members) or f"{folder}constants.pkl" in members
    )
    form = Format.TORCHSCRIPT if is_script else Format.ZIP
    places.update(reader.places)
    return Contents(path, form, size, tree, places, tuple(reader.globals), is_big_endian=is_big)


def _reader(archive: zipfile.ZipFile, whole: Any, member: zipfile.ZipInfo, prefix: str) -> Reader:
    size = member.file_size
    if member.compress_type != zipfile.ZIP_STORED:
        size = min(size, _LONGEST_PACKED)
    return Reader(Bounded(_opened(archive, whole, member), size), prefix)


def _opened(archive: zipfile.ZipFile, whole: Any, member: zipfile.ZipInfo) -> IO[bytes]:
    """A member, as a file; torch.save can be told to leave out checksums, on which zipfile insists."""
    place = member_place(whole, member)
    if member.CRC or place.offset is None:
        return archive.open(member)
    bare: Any = Window(whole, place.offset, place.size)
    return io.BufferedReader(bare)


def _inside(members: dict[str, zipfile.ZipInfo]) -> str:
    names = list(members)[:_SHOWN]
    return (
        f": it holds {', '.join(names)}{' ...' if len(members) > _SHOWN else ''}"
        if names
        else ": it is empty"
    )


def member_place(stream: IO[bytes] | io.BufferedReader, member: zipfile.ZipInfo, begin: int = 0) -> Place:
    """Where the bytes of a member are."""
    if member.compress_type != zipfile.ZIP_STORED:
        return Place(member.file_size, None, member.filename)
    stream.seek(member.header_offset)
    name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(30))
    data = begin + member.header_offset + 30 + name_length + extra_length
    return Place(member.file_size, data, member.filename, member.CRC)


def read_pickles(path: Path, stream: IO[bytes], size: int) -> Contents:
    """The old layout, or a pickle of the standard library."""
    reader = Reader(Bounded(stream, size))
    first = reader.load()
    if first != _LEGACY_MAGIC:
        return Contents(path, Format.PICKLE, size, first, reader.places, tuple(reader.globals))
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
    places.update(reader.places)
    is_big = isinstance(about, dict) and about.get("little_endian") is False
    return Contents(path, Format.LEGACY, size, tree, places, tuple(reader.globals), is_big_endian=is_big)


# Files of torch.save from before 0.1.10: a tar archive with the storages, the tensors and the tree in
# three members.

_MEMBERS = ("storages", "tensors", "pickle")
_MOST_DIMENSIONS = 64


class _TreeReader(Reader):
    """Tensors are referred to by numbers, classes with their source."""

    def __init__(self, stream: Bounded, tensors: dict[int, Tensor]) -> None:
        super().__init__(stream)
        self._tensors = tensors

    def persistent_load(self, pid: Any) -> Any:
        return pid[0] if isinstance(pid, tuple) else self._tensors[int(pid)]


def is_old_tar(stream: IO[bytes]) -> bool:
    """Whether a tar archive is one of these; any other was packed by hand."""
    try:
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            return archive.next() is not None and {"storages", "pickle"} <= set(archive.getnames())
    except tarfile.TarError:
        return False
    finally:
        stream.seek(0)


def read_tar(path: Path, stream: IO[bytes], size: int) -> Contents:
    """The tree, with the tensors that it refers to."""
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        members = {name: archive.getmember(name) for name in _MEMBERS}
    parts = {name: Window(stream, member.offset_data, member.size) for name, member in members.items()}
    storages, places = _storages(path, parts["storages"], members["storages"])
    tensors = _tensors(parts["tensors"], members["tensors"].size, storages)
    reader = _TreeReader(Bounded(parts["pickle"], members["pickle"].size), tensors)
    tree = reader.load()
    places.update(reader.places)
    return Contents(path, Format.LEGACY, size, tree, places, tuple(reader.globals))


def _next(window: Window, size: int) -> Any:
    return Reader(Bounded(window, size)).load()


def _storages(
    path: Path, window: Window, member: tarfile.TarInfo
) -> tuple[dict[int, Storage], dict[str, Place]]:
    found: dict[int, Storage] = {}
    places: dict[str, Place] = {}
    for _ in range(_next(window, member.size)):
        key, device, kind = _next(window, member.size)
        dtype = STORAGE_DTYPES.get(kind.name, "") if isinstance(kind, Global) else ""
        (elements,) = struct.unpack("<q", window.read(8) or b"")
        size = elements * ITEM_SIZES.get(dtype, 0)
        if elements < 0 or window.tell() + size > member.size:
            raise InputError(f"{path}: cut short: storage {key} ends after the file; fetch it anew")
        found[int(key)] = Storage(str(key), dtype, str(device), elements)
        places[str(key)] = Place(size, member.offset_data + window.tell())
        window.seek(window.tell() + size)
    for target, root, first, count in _next(window, member.size):
        whole = found[int(root)]
        found[int(target)] = Storage(whole.key, whole.dtype, whole.device, int(count), int(first))
    return found, places


def _tensors(window: Window, size: int, storages: dict[int, Storage]) -> dict[int, Tensor]:
    found = {}
    for _ in range(_next(window, size)):
        key, storage_key, _ = _next(window, size)
        (dimensions,) = struct.unpack("<i4x", window.read(8) or b"")
        if not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise ValueError("a tensor of too many dimensions")
        numbers = struct.unpack(f"<{2 * dimensions + 1}q", window.read(16 * dimensions + 8) or b"")
        if min(numbers) < 0:
            raise ValueError("a tensor's shape, strides and offset don't fit each other")
        storage = storages[int(storage_key)]
        shape, strides = numbers[:dimensions], numbers[dimensions:-1]
        found[int(key)] = Tensor(storage, storage.dtype, shape, strides, numbers[-1], storage.device)
    return found
