"""Completes a record that was cut off, so that plain h5py and other tools see all of its calls."""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path

from torchferry.accuracy.file.call_json import encoded_header
from torchferry.accuracy.file.chunks import (
    CHUNK_HEADER,
    MAGIC,
    Kind,
    open_for_repair,
    payload_after,
    superblock,
    write_all,
)
from torchferry.accuracy.file.groups import Groups
from torchferry.accuracy.file.scanning import Found, has_index, scanned, starts_like_ours
from torchferry.accuracy.file.table_objects import TableObjects
from torchferry.accuracy.file.tables import Tables
from torchferry.accuracy.file.writer import INDEX_ENTRY, index_payload
from torchferry.accuracy.model import Kept, group_name
from torchferry.errors import InputError, OutputError


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
    for kind, payload in ((Kind.GROUPS, data), (Kind.INDEX, index)):
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
