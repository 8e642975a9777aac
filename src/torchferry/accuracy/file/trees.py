"""HDF5's trees as bytes: of the names in a large group, and of the chunks of a dataset. Built whole, never changed."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from torchferry.accuracy.file.datatypes import UNDEFINED

LEAF_K, INTERNAL_K = 16, 16  # written into the superblock: half of what a leaf, and an inner node, hold
_CHUNK_K = 32  # HDF5's default; this version of the superblock has no place for another
_NAMES, _CHUNKS = 0, 1
_NO_FREE_SPACE = 1


class NameTree(NamedTuple):
    """A group's names, to be written at the place that they were built for."""

    data: bytes
    tree: int  # where it starts
    heap: int


def name_tree(links: Sequence[tuple[bytes, int]], base: int) -> NameTree:
    """The tree of a group's members, for this place in the file (a multiple of 8)."""
    links = sorted(links)
    names, offsets, end = [bytes(8)], [], 8
    for name, _ in links:
        padded = name + bytes(8 - len(name) % 8)
        names.append(padded)
        offsets.append(end)
        end += len(padded)
    heap_data = b"".join(names)
    heap = struct.pack("<4sB3xQQQ", b"HEAP", 0, end, _NO_FREE_SPACE, base + 32)
    parts, place = [heap, heap_data], base + 32 + end
    children, keys = [], [0]
    size = 2 * LEAF_K
    for start in range(0, len(links), size):
        count = len(links[start : start + size])
        flat = [
            value
            for (_, address), offset in zip(
                links[start : start + size], offsets[start : start + size], strict=True
            )
            for value in (offset, address, 0, 0, 0)
        ]
        leaf = struct.pack(f"<4sBxH{len(flat)}Q", b"SNOD", 1, count, *flat)
        parts.append(leaf + bytes(8 + size * 40 - len(leaf)))
        children.append(place)
        keys.append(offsets[start + count - 1])
        place += 8 + size * 40
    encoded = [struct.pack("<Q", key) for key in keys]
    nodes, root = _levels(_NAMES, children, encoded, place, 2 * INTERNAL_K)
    return NameTree(b"".join([*parts, nodes]), root, base)


class ChunkTree(NamedTuple):
    """Where the chunks of a dataset lie, to be written at the place that it was built for."""

    data: bytes
    root: int


def chunk_tree(chunks: Sequence[int], rows_a_chunk: int, chunk_size: int, base: int) -> ChunkTree:
    """The tree of a dataset of one dimension."""
    keys = [
        struct.pack("<IIQQ", chunk_size, 0, number * rows_a_chunk, 0) for number in range(len(chunks) + 1)
    ]
    data, root = _levels(_CHUNKS, chunks, keys, base, 2 * _CHUNK_K)
    return ChunkTree(data, root)


def _levels(
    kind: int, children: Sequence[int], keys: Sequence[bytes], place: int, capacity: int
) -> tuple[bytes, int]:
    """All nodes from the lowest level to the root, and where the root is; a child lies between two keys."""
    parts, level = [], 0
    size = 24 + capacity * 8 + (capacity + 1) * len(keys[0])
    while True:
        count = max(1, -(-len(children) // capacity))
        places = [place + number * size for number in range(count)]
        for number in range(count):
            start = number * capacity
            mine = children[start : start + capacity]
            left = places[number - 1] if number else UNDEFINED
            right = places[number + 1] if number + 1 < count else UNDEFINED
            head = struct.pack("<4sBBHQQ", b"TREE", kind, level, len(mine), left, right)
            body = b"".join(
                keys[start + position] + struct.pack("<Q", child) for position, child in enumerate(mine)
            )
            node = head + body + keys[start + len(mine)]
            parts.append(node + bytes(size - len(node)))
        place += count * size
        if count == 1:
            return b"".join(parts), places[0]
        keys = [keys[min(number * capacity, len(children))] for number in range(count + 1)]
        children, level = places, level + 1
