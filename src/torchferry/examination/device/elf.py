"""Which libraries and versions of them a shared object needs, and has: without readelf, and without loading it."""

from __future__ import annotations

import contextlib
import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from torchferry.examination.device.station import Station

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


_UNREADABLE = (OSError, struct.error, ValueError, OverflowError)


@lru_cache(maxsize=4096)
def read_shared_object(path: Path) -> SharedObject | None:
    """None: the file can't be read or is no ELF file of 64 bits."""
    with contextlib.suppress(*_UNREADABLE), open(path, "rb") as file:
        reader = _reader(file)
        return reader.read() if reader else None
    return None


def symbol_names(path: Path) -> bytes:
    """The names of its symbols, one after the other with a zero byte between; nothing where they can't be read."""
    with contextlib.suppress(*_UNREADABLE), open(path, "rb") as file:
        reader = _reader(file)
        return reader.names() if reader else b""
    return b""


def _reader(file: BinaryIO) -> _ElfReader | None:
    head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] != 2:
        return None
    return _ElfReader(file, "<" if head[5] == 1 else ">", head)


class _ElfReader:
    def __init__(self, file: BinaryIO, order: str, head: bytes) -> None:
        self._file = file
        self._order = order
        machine = struct.unpack_from(f"{order}H", head, 18)[0]
        self._machine = _MACHINES.get(machine, str(machine))
        offset = struct.unpack_from(f"{order}Q", head, 32)[0]
        size, count = struct.unpack_from(f"{order}HH", head, 54)
        # Kind, flags, place in the file, address, physical address, size in the file.
        segments = [self._unpack("IIQQQQ", offset + number * size) for number in range(count)]
        self._loaded = [segment for segment in segments if segment[0] == _LOADED]
        dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
        data = self._bytes(dynamic[2], min(dynamic[5], 16 * _MOST)) if dynamic else b""
        entries = struct.iter_unpack(f"{order}qQ", data[: len(data) // 16 * 16])
        self._entries = list(takewhile(lambda entry: entry[0] != _END, entries))
        self._values = dict(self._entries)
        self._strings = self._in_file(self._values.get(_STRINGS, 0))

    def read(self) -> SharedObject:
        run_path, path = self._texts(_RUNPATH), self._texts(_RPATH)
        defined = []
        place = self._in_file(self._values.get(_DEFINED, 0))
        for _ in range(min(self._values.get(_DEFINED_COUNT, 0), _MOST)):
            *_, first, following = self._unpack("HHHHIII", place)
            defined.append(self._text(self._strings + self._unpack("II", place + first)[0]))
            place += following
        return SharedObject(
            self._machine,
            tuple(self._texts(_NEEDED)),
            tuple(folder for text in run_path or path for folder in text.split(":") if folder),
            bool(path and not run_path),
            tuple(self._wanted()),
            frozenset(defined),
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

    def _texts(self, tag: int) -> list[str]:
        return [self._text(self._strings + value) for kind, value in self._entries if kind == tag]

    def _bytes(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        form = self._order + form
        return struct.unpack(form, self._bytes(offset, struct.calcsize(form)))

    def _text(self, offset: int) -> str:
        return self._bytes(offset, _LONGEST_NAME).partition(b"\0")[0].decode("utf-8", "replace")

    def _in_file(self, address: int) -> int:
        """Where in the file an address lies."""
        for _, _, place, start, _, size in self._loaded:
            if start <= address < start + size:
                return address - start + place
        return address


# Where the loader of this machine looks for a shared library, in its order, and all that a library
# needs in turn.

_CONFIGURATION = "etc/ld.so.conf"
_DEFAULT_FOLDERS = ("lib64", "usr/lib64", "lib", "usr/lib")


@dataclass
class Needs:
    """What some libraries need, directly or in turn."""

    found: dict[str, Path] = field(default_factory=dict)
    missing: dict[str, Path] = field(default_factory=dict)  # with the file that needs it
    wants: list[tuple[Path, str, str]] = field(default_factory=list)  # a file, a library, its version


class LibrarySearch:
    """Looks up names as the loader does, without loading anything."""

    def __init__(self, station: Station) -> None:
        self._station = station
        listed = station.machine.environment.get("LD_LIBRARY_PATH", "").split(":")
        # the same folder is often named a hundred times, once for each time that a script was sourced
        self._listed = [station.path(name) for name in dict.fromkeys(listed) if name]
        root, processor = station.machine.root, station.machine.architecture
        usual = [f"{folder}/{processor}-linux-gnu" for folder in ("lib", "usr/lib")] + [*_DEFAULT_FOLDERS]
        configured = self._configured(root / _CONFIGURATION, depth=3)
        self._system = list(dict.fromkeys([*configured, *(root / folder for folder in usual)]))
        # `import torch` comes first, so that its libraries are loaded already
        torch = station.package("torch")
        self._loaded = [torch / "lib"] if torch else []
        # Folders that Python's own program names for all that it loads, as those of conda do.
        interpreter = station.interpreter
        program = read_shared_object(interpreter) if interpreter is not None else None
        self._of_interpreter: list[Path] = []
        if interpreter is not None and program is not None and program.is_inherited:
            self._of_interpreter = [self._own_folder(folder, interpreter) for folder in program.search]

    def needs(self, files: Iterable[Path]) -> Needs:
        """All that these files need, and what that needs; PyTorch's own libraries are taken to be whole."""
        result = Needs()
        waiting = deque(files)
        while waiting:
            file = waiting.popleft()
            library = read_shared_object(file)
            if library is None:
                continue
            result.wants += [(file, *want) for want in library.wants]
            for name in library.needed:
                if name in result.found or name in result.missing or name.startswith("ld-linux"):
                    continue
                place = self.find(name, file, library)
                if place is None:
                    result.missing[name] = file
                    continue
                result.found[name] = place
                if place.parent not in self._loaded and place.parent not in self._system:
                    waiting.append(place)
        return result

    def find(
        self, name: str, asked_by: Path | None = None, library: SharedObject | None = None
    ) -> Path | None:
        """The file that a library's name stands for; None: the loader does not find one for this processor."""
        own: list[Path] = []
        if asked_by is not None and library is not None:
            own = [self._own_folder(folder, asked_by) for folder in library.search]
        first, later = (own, []) if library is not None and library.is_inherited else ([], own)
        folders = (*first, *self._of_interpreter, *self._listed, *later, *self._loaded, *self._system)
        files = (folder / name for folder in folders)
        return next((file for file in files if os.path.isfile(file) and self._suits(file)), None)

    def wrong_architecture(self, name: str) -> Path | None:
        """A file of that name on the way which is made for another processor."""
        files = (folder / name for folder in (*self._listed, *self._system))
        return next((file for file in files if os.path.isfile(file) and not self._suits(file)), None)

    def _own_folder(self, text: str, asked_by: Path) -> Path:
        origin = os.path.dirname(os.path.realpath(asked_by))
        if "ORIGIN" in text:
            return Path(text.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
        return self._station.path(text)

    def _suits(self, file: Path) -> bool:
        library = read_shared_object(file)  # linker scripts do not say
        return library is None or library.machine == self._station.machine.architecture

    def _configured(self, file: Path, depth: int) -> list[Path]:
        """The folders of ld.so.conf and of the files that it includes."""
        found: list[Path] = []
        text = self._station.machine.read(str(file.relative_to(self._station.machine.root))) or ""
        for line in (line.partition("#")[0].strip() for line in text.splitlines()):
            if line.startswith("include") and depth:
                pattern = line.removeprefix("include").strip()
                wanted = pattern if pattern.startswith("/") else f"/etc/{pattern}"
                for each in self._station.machine.files([wanted]):
                    found += self._configured(each, depth - 1)
            elif line and not line.startswith("include"):
                found.append(self._station.path(line))
        return found
