"""Finds what is in the file of a record: by its index, or from chunk to chunk where it was cut off."""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

from torchferry.accuracy.file.call_json import decoded_header, encoded_header
from torchferry.accuracy.file.chunks import (
    CHUNK_HEADER,
    MAGIC,
    OURS,
    SIGNATURE,
    START,
    TRAILER,
    VERSION,
    ChunkKind,
    open_for_repair,
    payload_after,
    superblock,
    write_all,
)
from torchferry.accuracy.file.hdf5 import Groups
from torchferry.accuracy.file.tables import TableObjects, Tables
from torchferry.accuracy.file.writer import CALL_START, INDEX_ENTRY, INDEX_START, index_payload
from torchferry.accuracy.model import Header, Kept, group_name
from torchferry.errors import InputError, OutputError

_CUT_OFF = "the file was cut off; it holds what was recorded until then"


class Places(Sequence[tuple[int, int]]):
    """Place and length of each call's JSON."""

    def __init__(self, entries: bytes | memoryview = b"") -> None:
        self._numbers = array("Q")
        self._numbers.frombytes(entries)
        if sys.byteorder != "little":
            self._numbers.byteswap()

    def append(self, place: int, length: int) -> None:
        """One more."""
        self._numbers.extend((place, length))

    def __len__(self) -> int:
        return len(self._numbers) // 2

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | list[tuple[int, int]]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._numbers[2 * index], self._numbers[2 * index + 1]


@dataclass
class Found:
    """What the file of a record holds."""

    header: Header
    calls: Places = field(default_factory=Places)
    tables: dict[ChunkKind, list[tuple[int, int]]] = field(default_factory=dict)  # of statistics
    groups: list[int] = field(default_factory=list)  # where each call's group is; only of files cut off
    end: int = START  # of the last whole chunk


def is_ours(memory: Any) -> bool:
    """Whether a file was written in chunks; memory is that of the whole file."""
    return bytes(memory[: len(SIGNATURE)]) == SIGNATURE and bytes(memory[START - TRAILER.size :][:8]) == OURS


def starts_like_ours(start: bytes) -> bool:
    """Whether these are the first bytes of a file in chunks."""
    return len(start) >= START and is_ours(start)


def has_index(memory: Any) -> bool:
    """Whether the file was ended, and is all there."""
    *_, index, length = TRAILER.unpack_from(memory, START - TRAILER.size)
    return bool(index and index + length <= len(memory))


def scanned(memory: Any, name: str) -> Found:
    """Everything that is whole in the file."""
    _, version, _, index, length = TRAILER.unpack_from(memory, START - TRAILER.size)
    if version > VERSION:
        raise InputError(f"{name}: was written by a newer TorchFerry; update this one to read it")
    try:
        if not has_index(memory):
            return _hopped(memory, name)
        found = _indexed(memory, index, length)
        if found.header.kept is Kept.STATISTICS:  # a few large chunks
            found.tables = _hopped(memory, name).tables
        return found
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise InputError(f"{name}: is damaged: {str(error).splitlines()[0]}") from None


def _indexed(memory: Any, index: int, length: int) -> Found:
    size, count = INDEX_START.unpack_from(memory, index)
    start = index + INDEX_START.size
    found = Found(decoded_header(bytes(memory[start : start + size])), end=index + length)
    start += size + -size % 8
    if start + count * INDEX_ENTRY.size > index + length:
        raise ValueError("its index is cut off")
    found.calls = Places(memory[start : start + count * INDEX_ENTRY.size])
    return found


def chunks_in(memory: Any) -> Iterator[tuple[ChunkKind, int, int]]:
    """Kind, place and length of each whole chunk."""
    end, size = START, len(memory)
    while True:
        start = payload_after(end)
        if start > size:
            return
        magic, kind, length = CHUNK_HEADER.unpack_from(memory, start - CHUNK_HEADER.size)
        if magic != MAGIC or start + length > size or kind not in ChunkKind._value2member_map_:
            return
        yield ChunkKind(kind), start, length
        end = start + length


def _hopped(memory: Any, name: str) -> Found:
    """A file without an index: its recorder is still at work, or did not live to write it."""
    found: Found | None = None
    for kind, start, length in chunks_in(memory):
        if kind is ChunkKind.HEADER:
            header = decoded_header(bytes(memory[start : start + length]))
            found = Found(replace(header, complete=False, notes=(*header.notes, _CUT_OFF)))
        if found is None:
            break
        if kind is ChunkKind.CALL:
            size, group = CALL_START.unpack_from(memory, start)
            found.calls.append(start + CALL_START.size, size)
            found.groups.append(group)
        elif kind.is_table:
            found.tables.setdefault(kind, []).append((start, length))
        found.end = start + length
    if found is None:
        raise InputError(f"{name}: was cut off before anything was recorded")
    return found


# Completes a record that was cut off, so that plain h5py and other tools see all of its calls.


def repair(path: Path) -> bool:
    """Complete a file in place; False if nothing is missing. What is whole in it is not touched."""
    path = Path(path)
    descriptor = open_for_repair(path)
    try:
        size = os.fstat(descriptor).st_size
        if not starts_like_ours(os.pread(descriptor, 128, 0)):
            raise InputError(f"{path}: is no record of ours; only those can be repaired")
        with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as memory:
            if has_index(memory):
                return False
            found = scanned(memory, str(path))
            pieces, end, place = _completed(memory, found)
        os.ftruncate(descriptor, found.end)
        os.lseek(descriptor, found.end, os.SEEK_SET)
        write_all(descriptor, pieces)
        root, index, length = place
        os.pwrite(descriptor, superblock(root, end, index, length), 0)
        return True
    except OSError as error:
        raise OutputError(f"{path}: can't be repaired: {error.strerror or error}") from None
    finally:
        os.close(descriptor)


def _completed(memory: memoryview, found: Found) -> tuple[list[bytes], int, tuple[int, int, int]]:
    """What is to be appended, where the file ends then, and places of the root and of the index with its length."""
    start = payload_after(found.end)
    if found.header.kept is Kept.STATISTICS:
        data, root = _tables(memory, found, start)
    else:
        data, root = _groups(memory, found, start)
    entries = [INDEX_ENTRY.pack(*place) for place in found.calls]
    index = index_payload(encoded_header(found.header).encode(), entries)
    pieces, end = [], found.end
    for kind, payload in ((ChunkKind.GROUPS, data), (ChunkKind.INDEX, index)):
        place = payload_after(end)
        pieces += [
            bytes(place - CHUNK_HEADER.size - end) + CHUNK_HEADER.pack(MAGIC, kind, len(payload)),
            payload,
        ]
        end = place + len(payload)
    return pieces, end, (root, end - len(index), len(index))


def _groups(memory: memoryview, found: Found, start: int) -> tuple[bytes, int]:
    groups = Groups(found.header)
    for (place, length), address in zip(found.calls, found.groups, strict=True):
        made = json.loads(bytes(memory[place : place + length]))
        groups.add(group_name(made["operator"]), made["number"], address)
    return groups.encoded(start)


def _tables(memory: memoryview, found: Found, start: int) -> tuple[bytes, int]:
    tables = Tables(memory, found.tables)
    return TableObjects().encoded(start, found.header, tables.extents, tables.lines)
