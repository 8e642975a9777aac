"""Which libraries a shared object needs, read from its dynamic section: without readelf, and without loading it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64"}
_LOADED, _DYNAMIC = 1, 2  # kinds of segments
_END, _NEEDED, _STRINGS, _RPATH, _RUNPATH = 0, 1, 5, 15, 29
_LONGEST_NAME = 4096


@dataclass(frozen=True)
class SharedObject:
    """What the head of a file says."""

    machine: str  # x86_64; a number where no name is known
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()  # folders of its own: RPATH or RUNPATH, as they are written


def read_shared_object(path: Path) -> SharedObject | None:
    """None: the file can't be read or is no ELF file of 64 bits."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] != 2:
                return None
            return _Reader(file, "<" if head[5] == 1 else ">").read(head)
    except (OSError, struct.error, ValueError):
        return None


class _Reader:
    def __init__(self, file: BinaryIO, order: str) -> None:
        self._file = file
        self._order = order

    def read(self, head: bytes) -> SharedObject:
        machine = struct.unpack_from(f"{self._order}H", head, 18)[0]
        offset = struct.unpack_from(f"{self._order}Q", head, 32)[0]
        size, count = struct.unpack_from(f"{self._order}HH", head, 54)
        segments = [self._segment(offset + number * size) for number in range(count)]
        loaded = [segment for segment in segments if segment[0] == _LOADED]
        dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
        name = _MACHINES.get(machine, str(machine))
        if dynamic is None:
            return SharedObject(name)
        entries = self._entries(dynamic[1], dynamic[3])
        strings = _in_file(dict(entries).get(_STRINGS, 0), loaded)

        def texts(tag: int) -> list[str]:
            return [self._text(strings + value) for kind, value in entries if kind == tag]

        search = texts(_RUNPATH) or texts(_RPATH)
        return SharedObject(
            name,
            tuple(texts(_NEEDED)),
            tuple(folder for text in search for folder in text.split(":") if folder),
        )

    def _bytes(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)

    def _segment(self, offset: int) -> tuple[int, int, int, int]:
        """Kind, place in the file, address, size in the file."""
        kind, _, place, address, _, size = struct.unpack(f"{self._order}IIQQQQ", self._bytes(offset, 40))
        return kind, place, address, size

    def _entries(self, offset: int, size: int) -> list[tuple[int, int]]:
        data = self._bytes(offset, size)
        found = []
        for kind, value in struct.iter_unpack(f"{self._order}qQ", data[: len(data) // 16 * 16]):
            if kind == _END:
                break
            found.append((kind, value))
        return found

    def _text(self, offset: int) -> str:
        return self._bytes(offset, _LONGEST_NAME).partition(b"\0")[0].decode("utf-8", "replace")


def _in_file(address: int, loaded: list[tuple[int, int, int, int]]) -> int:
    """Where in the file an address lies."""
    for _, place, start, size in loaded:
        if start <= address < start + size:
            return address - start + place
    return address
