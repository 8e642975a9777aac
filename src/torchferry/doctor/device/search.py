"""Where the loader of this machine looks for a shared library, in its order, and all that a library needs in turn."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from torchferry.doctor.device.elf import SharedObject, read_shared_object
from torchferry.doctor.device.station import Station

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
        self._system = list(dict.fromkeys(self._system_folders()))
        # `import torch` comes first, so that its libraries are loaded already
        torch = station.package("torch")
        self._loaded = [torch / "lib"] if torch else []
        self._of_interpreter = self._inherited(station.interpreter)

    def needs(self, files: Iterable[Path]) -> Needs:
        """All that these files need, and what that needs; PyTorch's own libraries are taken to be whole."""
        result = Needs()
        waiting = deque(files)
        while waiting:
            file = waiting.popleft()
            library = _read(file)
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
        return next((found for folder in folders if (found := self._in(folder, name))), None)

    def wrong_architecture(self, name: str) -> Path | None:
        """A file of that name on the way which is made for another processor."""
        files = (folder / name for folder in (*self._listed, *self._system))
        return next((file for file in files if os.path.isfile(file) and not self._suits(file)), None)

    def _inherited(self, interpreter: Path | None) -> list[Path]:
        """Folders that Python's own program names for all that it loads, as those of conda do."""
        program = _read(interpreter) if interpreter is not None else None
        if interpreter is None or program is None or not program.is_inherited:
            return []
        return [self._own_folder(folder, interpreter) for folder in program.search]

    def _own_folder(self, text: str, asked_by: Path) -> Path:
        origin = os.path.dirname(os.path.realpath(asked_by))
        if "ORIGIN" in text:
            return Path(text.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
        return self._station.path(text)

    def _in(self, folder: Path, name: str) -> Path | None:
        file = folder / name
        return file if os.path.isfile(file) and self._suits(file) else None

    def _suits(self, file: Path) -> bool:
        library = _read(file)  # linker scripts do not say
        return library is None or library.machine == self._station.machine.architecture

    def _system_folders(self) -> list[Path]:
        root = self._station.machine.root
        architecture = self._station.machine.architecture
        configured = self._configured(root / _CONFIGURATION, depth=3)
        multi = [root / folder / f"{architecture}-linux-gnu" for folder in ("lib", "usr/lib")]
        return [*configured, *multi, *(root / folder for folder in _DEFAULT_FOLDERS)]

    def _configured(self, file: Path, depth: int) -> list[Path]:
        """The folders of ld.so.conf and of the files that it includes."""
        found: list[Path] = []
        text = self._station.machine.read(str(file.relative_to(self._station.machine.root))) or ""
        for line in (line.partition("#")[0].strip() for line in text.splitlines()):
            if line.startswith("include") and depth:
                pattern = line.removeprefix("include").strip()
                wanted = pattern if pattern.startswith("/") else f"/etc/{pattern}"
                for each in self._station.files([wanted]):
                    found += self._configured(each, depth - 1)
            elif line and not line.startswith("include"):
                found.append(self._station.path(line))
        return found


@lru_cache(maxsize=4096)
def _read(file: Path) -> SharedObject | None:
    return read_shared_object(file)
