"""HDF5's objects as bytes: headers of datasets and of groups, in the version that has no checksums to work out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TypeVar

from torchferry.accuracy.file.datatypes import UNDEFINED, dataspace, integer, text

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
        others = [
            message(_DATATYPE, kind, _CONSTANT),
            message(_DATASPACE, dataspace(dims)),
            *attributes,
        ]
        whole = header([layout, *others])
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


def chunked_dataset(
    kind: bytes, rows: int, rows_a_chunk: int, row_size: int, tree: int, attributes: Sequence[bytes] = ()
) -> bytes:
    """A dataset of one dimension whose chunks are found by a tree."""
    layout = struct.pack("<BBBQII", 3, 2, 2, tree, rows_a_chunk, row_size)
    messages = [message(_DATATYPE, kind, _CONSTANT), message(_DATASPACE, dataspace((rows,)))]
    return header([*messages, message(_LAYOUT, layout), *attributes])


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


def small_group(links: Sequence[tuple[bytes, int]]) -> bytes:
    """A group that holds the names and addresses of its members in its header."""
    pieces = group_pieces(links)
    return b"".join(piece if isinstance(piece, bytes) else ADDRESS.pack(piece) for piece in pieces)


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
