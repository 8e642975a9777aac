"""Which libraries and versions of them a shared object needs, and has: without readelf, and without loading it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64"}
_LOADED, _DYNAMIC = 1, 2  # kinds of segments
_END, _NEEDED, _STRINGS, _STRINGS_SIZE, _RPATH, _RUNPATH = 0, 1, 5, 10, 15, 29
_DEFINED, _DEFINED_COUNT, _WANTED, _WANTED_COUNT = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_LONGEST_NAME = 4096
_MOST = 4096  # records of one kind: a file that claims more is broken
_LARGEST_NAMES = 64 << 20


@dataclass(frozen=True)
class SharedObject:
    """What the head of a file says."""

    machine: str  # x86_64; a number where no name is known
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()  # folders of its own: RPATH or RUNPATH, as they are written
    is_inherited: bool = False  # RPATH, which holds for what it loads as well
    wants: tuple[tuple[str, str], ...] = ()  # libstdc++.so.6, GLIBCXX_3.4.29
    has: frozenset[str] = frozenset()  # GLIBCXX_3.4.29


def read_shared_object(path: Path) -> SharedObject | None:
    """None: the file can't be read or is no ELF file of 64 bits."""
    try:
        with open(path, "rb") as file:
            reader = _reader(file)
            return reader.read() if reader else None
    except (OSError, struct.error, ValueError, OverflowError):
        return None


def symbol_names(path: Path) -> bytes:
    """The names of its symbols, one after the other with a zero byte between; nothing where they can't be read."""
    try:
        with open(path, "rb") as file:
            reader = _reader(file)
            return reader.names() if reader else b""
    except (OSError, struct.error, ValueError, OverflowError):
        return b""


def _reader(file: BinaryIO) -> _Reader | None:
    head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] != 2:
        return None
    return _Reader(file, "<" if head[5] == 1 else ">", head)


class _Reader:
    def __init__(self, file: BinaryIO, order: str, head: bytes) -> None:
        self._file = file
        self._order = order
        machine = struct.unpack_from(f"{order}H", head, 18)[0]
        self._machine = _MACHINES.get(machine, str(machine))
        offset = struct.unpack_from(f"{order}Q", head, 32)[0]
        size, count = struct.unpack_from(f"{order}HH", head, 54)
        segments = [self._segment(offset + number * size) for number in range(count)]
        self._loaded = [segment for segment in segments if segment[0] == _LOADED]
        dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
        self._entries = self._read_entries(dynamic[1], dynamic[3]) if dynamic else []
        self._values = dict(self._entries)
        self._strings = self._in_file(self._values.get(_STRINGS, 0))

    def read(self) -> SharedObject:
        run_path, path = self._texts(_RUNPATH), self._texts(_RPATH)
        return SharedObject(
            self._machine,
            tuple(self._texts(_NEEDED)),
            tuple(folder for text in run_path or path for folder in text.split(":") if folder),
            bool(path and not run_path),
            tuple(self._wanted()),
            frozenset(self._defined()),
        )

    def names(self) -> bytes:
        size = self._values.get(_STRINGS_SIZE, 0)
        return self._bytes(self._strings, min(size, _LARGEST_NAMES)) if size else b""

    def _wanted(self) -> Iterator[tuple[str, str]]:
        """The versions that must be in each library."""
        place = self._in_file(self._values.get(_WANTED, 0))
        for _ in range(min(self._values.get(_WANTED_COUNT, 0), _MOST)):
            _, count, file, first, following = self._unpack("HHIII", place)
            library, each = self._text(self._strings + file), place + first
            for _ in range(count):
                _, flags, _, name, onward = self._unpack("IHHII", each)
                if not flags & 2:  # weak ones may be missing
                    yield library, self._text(self._strings + name)
                each += onward
            place += following

    def _defined(self) -> Iterator[str]:
        """The versions that it has."""
        place = self._in_file(self._values.get(_DEFINED, 0))
        for _ in range(min(self._values.get(_DEFINED_COUNT, 0), _MOST)):
            *_, first, following = self._unpack("HHHHIII", place)
            yield self._text(self._strings + self._unpack("II", place + first)[0])
            place += following

    def _texts(self, tag: int) -> list[str]:
        return [self._text(self._strings + value) for kind, value in self._entries if kind == tag]

    def _bytes(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        form = self._order + form
        return struct.unpack(form, self._bytes(offset, struct.calcsize(form)))

    def _segment(self, offset: int) -> tuple[int, int, int, int]:
        """Kind, place in the file, address, size in the file."""
        kind, _, place, address, _, size = self._unpack("IIQQQQ", offset)
        return kind, place, address, size

    def _read_entries(self, offset: int, size: int) -> list[tuple[int, int]]:
        data = self._bytes(offset, min(size, 16 * _MOST))
        found = []
        for kind, value in struct.iter_unpack(f"{self._order}qQ", data[: len(data) // 16 * 16]):
            if kind == _END:
                break
            found.append((kind, value))
        return found

    def _text(self, offset: int) -> str:
        return self._bytes(offset, _LONGEST_NAME).partition(b"\0")[0].decode("utf-8", "replace")

    def _in_file(self, address: int) -> int:
        """Where in the file an address lies."""
        for _, place, start, size in self._loaded:
            if start <= address < start + size:
                return address - start + place
        return address
