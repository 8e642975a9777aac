"""HDF5's objects as bytes: headers of datasets and of groups, in the version that has no checksums to work out."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TypeVar

from torchferry.accuracy.model import SIZES, RecordHeader

# HDF5's descriptions of element types, dataspaces and attributes, as bytes; how PyTorch's dtypes lie
# in a file.

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
    return dims if len(dims) <= _RANKS else (math.prod(dims),)


_DATASPACE, _LINK_INFO, _DATATYPE, _LINK, _LAYOUT, _GROUP_INFO, _ATTRIBUTE, _SYMBOL_TABLE = (
    0x01, 0x02, 0x03, 0x06, 0x08, 0x0A, 0x0C, 0x11,
)  # fmt: skip
Address = TypeVar("Address")
_MESSAGE = struct.Struct("<HHB3x")
_HEADER = struct.Struct("<BxHII4x")
ADDRESS = struct.Struct("<Q")
_CONSTANT = 1  # flag of a message that never changes
_MOST_LINKS = 60_000  # messages are counted with 16 bits
_LONGEST_TEXT = 60_000  # a message holds 64 KiB


def message(kind: int, body: bytes, flags: int = 0) -> bytes:
    """One message of an object header."""
    padded = body + bytes(-len(body) % 8)
    return _MESSAGE.pack(kind, len(padded), flags) + padded


def header(messages: Sequence[bytes]) -> bytes:
    """An object header."""
    body = b"".join(messages)
    return _HEADER.pack(1, len(messages), 1, len(body)) + body


def attribute(name: str, kind: bytes, dims: tuple[int, ...], data: bytes) -> bytes:
    """An attribute, as a message."""
    encoded, space = name.encode() + b"\0", dataspace(dims)
    start = struct.pack("<BBHHHB", 3, 0, len(encoded), len(kind), len(space), 1)
    return message(_ATTRIBUTE, start + encoded + kind + space + data)


@lru_cache(maxsize=10_000)
def number_attribute(name: str, value: int) -> bytes:
    """An attribute that is a whole number."""
    return attribute(name, integer(8), (), struct.pack("<q", value))


def numbers_attribute(name: str, values: Sequence[int]) -> bytes:
    """An attribute of whole numbers."""
    return attribute(name, integer(8), (len(values),), struct.pack(f"<{len(values)}q", *values))


def text_attribute(name: str, value: str) -> bytes:
    """An attribute that is a text; one that is too long is cut."""
    data = value.encode("utf-8", "backslashreplace")[:_LONGEST_TEXT] or b"\0"
    return attribute(name, text(len(data)), (), data)


class DatasetTemplate:
    """A dataset's header, but for the address of its bytes."""

    __slots__ = ("_after", "_before", "is_empty")

    def __init__(
        self, kind: bytes, dims: tuple[int, ...] | None, nbytes: int, attributes: Sequence[bytes] = ()
    ) -> None:
        layout = message(_LAYOUT, struct.pack("<BBQQ", 3, 1, 0, nbytes))
        element_type, space = message(_DATATYPE, kind, _CONSTANT), message(_DATASPACE, dataspace(dims))
        whole = header([layout, element_type, space, *attributes])
        start = _HEADER.size + _MESSAGE.size + 2
        self._before, self._after = whole[:start], whole[start + 8 :]
        self.is_empty = nbytes == 0

    def at(self, address: int) -> bytes:
        """The header of a dataset whose bytes lie there."""
        return self._before + ADDRESS.pack(UNDEFINED if self.is_empty else address) + self._after


def small_dataset(
    kind: bytes, dims: tuple[int, ...] | None, data: bytes, attributes: Sequence[bytes]
) -> bytes:
    """A dataset that holds its bytes in its header."""
    if dims is None:
        return DatasetTemplate(kind, None, 0, attributes).at(UNDEFINED)
    layout = message(_LAYOUT, struct.pack("<BBH", 3, 0, len(data)) + data)
    return header(
        [message(_DATATYPE, kind, _CONSTANT), message(_DATASPACE, dataspace(dims)), layout, *attributes]
    )


def chunked_dataset(kind: bytes, rows: int, rows_a_chunk: int, row_size: int, tree: int) -> bytes:
    """A dataset of one dimension whose chunks are found by a tree."""
    layout = struct.pack("<BBBQII", 3, 2, 2, tree, rows_a_chunk, row_size)
    messages = [message(_DATATYPE, kind, _CONSTANT), message(_DATASPACE, dataspace((rows,)))]
    return header([*messages, message(_LAYOUT, layout)])


@cache
def _group_start() -> list[bytes]:
    """Its links are in the header, and remember in which order they were made."""
    info = struct.pack("<BBqQQ", 0, 1, 1 << 16, UNDEFINED, UNDEFINED)
    return [message(_LINK_INFO, info), message(_GROUP_INFO, b"\0\0", _CONSTANT)]


@lru_cache(maxsize=100_000)
def _link(name: bytes, order: int) -> tuple[bytes, bytes]:
    """A link's message, before and after the address."""
    start = struct.pack("<BBQBH", 1, 0x15, order, 1, len(name)) + name
    whole = message(_LINK, start + bytes(8))
    end = _MESSAGE.size + len(start)
    return whole[:end], whole[end + 8 :]


def group_pieces(links: Sequence[tuple[bytes, Address]]) -> list[bytes | Address]:
    """A group that holds the names and addresses of its members in its header: bytes, and addresses of 8 bytes."""
    links = links[:_MOST_LINKS]
    pieces: list[bytes | Address] = [*_group_start()]
    for order, (name, address) in enumerate(links):
        before, after = _link(name, order)
        pieces += (before, address, after)
    size = sum(len(piece) if isinstance(piece, bytes) else 8 for piece in pieces)
    return [_HEADER.pack(1, len(_group_start()) + len(links), 1, size), *pieces]


def text_pieces(
    address: Address, length4: Address, length8: Address, type_number: int
) -> list[bytes | Address]:
    """A dataset that is one text, but for where its bytes lie and how many they are."""
    kind, layout = text(0), struct.pack("<BBQQ", 3, 1, 0, 0)
    before = _MESSAGE.pack(_DATATYPE, 8, _CONSTANT) + kind[:4]
    middle = _MESSAGE.pack(_LAYOUT, 24, 0) + layout[:2]
    rest = message(_DATASPACE, dataspace(())) + number_attribute("Type", type_number)
    size = len(before) + 4 + len(middle) + 8 + 8 + 6 + len(rest)
    return [_HEADER.pack(1, 4, 1, size) + before, length4, middle, address, length8, bytes(6) + rest]


def large_group(tree: int, heap: int, attributes: Sequence[bytes] = ()) -> bytes:
    """A group whose members are found by a tree."""
    return header([message(_SYMBOL_TABLE, struct.pack("<QQ", tree, heap)), *attributes])


# HDF5's trees as bytes: of the names in a large group, and of the chunks of a dataset. Built whole,
# never changed.

LEAF_K, INTERNAL_K = 16, 16  # written into the superblock: half of what a leaf, and an inner node, hold
_CHUNK_K = 32  # HDF5's default; this version of the superblock has no place for another
_NAMES, _CHUNKS = 0, 1
_NO_FREE_SPACE = 1


def name_tree(links: Sequence[tuple[bytes, int]], base: int) -> tuple[bytes, int]:
    """The heap of names and the tree of a group's members, for this place in the file (a multiple of 8); and where the
    tree starts."""
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
    return b"".join([*parts, nodes]), root


def chunk_tree(chunks: Sequence[int], rows_a_chunk: int, chunk_size: int, base: int) -> tuple[bytes, int]:
    """The tree of a dataset of one dimension, for this place in the file, and where its root is."""
    keys = [
        struct.pack("<IIQQ", chunk_size, 0, number * rows_a_chunk, 0) for number in range(len(chunks) + 1)
    ]
    return _levels(_CHUNKS, chunks, keys, base, 2 * _CHUNK_K)


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


# HDF5's root and the groups of operators in it, which are written again at each checkpoint.

_SMALL = 16  # members that a group holds in its header; of more, each would be looked for one by one


class Groups:
    """The calls of each operator, by number."""

    def __init__(self) -> None:
        self._calls: dict[str, list[tuple[bytes, int]]] = {}
        self._saved: dict[str, tuple[int, int]] = {}  # number of members, where the group lies

    def add(self, operator: str, number: int, address: int) -> None:
        """A call's group lies there."""
        self._calls.setdefault(operator, []).append((b"%d" % number, address))

    def forget(self, end: int) -> None:
        """None of the groups is in the file, nor are calls behind this place."""
        self._saved.clear()
        for links in self._calls.values():
            while links and links[-1][1] >= end:
                links.pop()

    def encoded(self, base: int, header: RecordHeader) -> tuple[bytes, int]:
        """All groups that have changed, for this place in the file, and where the root will be."""
        parts, place = [], base
        for operator, links in self._calls.items():
            count, _ = self._saved.get(operator, (0, 0))
            if count == len(links):
                continue
            data, address = group(links, place)
            parts.append(data)
            place += len(data)
            self._saved[operator] = len(links), address
        members = [(operator.encode(), address) for operator, (_, address) in self._saved.items()]
        data, address = root(members, header, place)
        return b"".join([*parts, data]), address


def root(members: list[tuple[bytes, int]], header: RecordHeader, base: int) -> tuple[bytes, int]:
    """HDF5's root for this place in the file, and where its header will be."""
    names, tree = name_tree(members, base)
    return names + large_group(tree, base, root_attributes(header)), base + len(names)


def group(links: list[tuple[bytes, int]], base: int) -> tuple[bytes, int]:
    """A group for this place in the file, and where its header will be."""
    if len(links) <= _SMALL:
        pieces = group_pieces(links)
        return b"".join(each if isinstance(each, bytes) else ADDRESS.pack(each) for each in pieces), base
    names, tree = name_tree(links, base)
    return names + large_group(tree, base), base + len(names)


_NUMBERS = ("rank", "world", "simulated", "modules_only", "complete")


def root_attributes(header: RecordHeader) -> list[bytes]:
    """What the record is of, for those who read it with plain h5py."""
    texts = {"kept": header.kept.value}
    texts |= {
        name: getattr(header, name)
        for name in ("program", "device", "torch", "vendor", "replayed", "selected", "in_part")
    }
    texts["notes"] = "\n".join(header.notes)
    numbers = {name: int(getattr(header, name)) for name in _NUMBERS}
    if header.apis:
        numbers["apis"] = 1
    return [
        *(text_attribute(name, value) for name, value in texts.items()),
        *(number_attribute(name, value) for name, value in numbers.items()),
    ]
