"""Where the loader of this machine looks for a shared library, in its order."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from torchferry.doctor.device.elf import read_shared_object
from torchferry.doctor.device.station import Station

_CONFIGURATION = "etc/ld.so.conf"
_DEFAULT_FOLDERS = ("lib64", "usr/lib64", "lib", "usr/lib")


class LibrarySearch:
    """Looks up names as the loader does, without loading anything."""

    def __init__(self, station: Station) -> None:
        self._station = station
        listed = station.machine.environment.get("LD_LIBRARY_PATH", "").split(":")
        self._listed = [station.path(name) for name in listed if name]
        self._system = self._system_folders()
        # `import torch` comes first, so that its libraries are loaded already
        torch = station.package("torch")
        self._loaded = [torch / "lib"] if torch else []

    def find(self, name: str, asked_by: Path | None = None, search: tuple[str, ...] = ()) -> Path | None:
        """The file that a library's name stands for; None: the loader does not find one for this processor."""
        own = [self._own_folder(folder, asked_by) for folder in search] if asked_by else []
        folders = (*own, *self._listed, *self._loaded, *self._system)
        return next((found for folder in folders if (found := self._in(folder, name))), None)

    def wrong_architecture(self, name: str) -> Path | None:
        """A file of that name on the way which is made for another processor."""
        files = (folder / name for folder in (*self._listed, *self._system))
        return next((file for file in files if file.is_file() and not self._suits(file)), None)

    def _own_folder(self, text: str, asked_by: Path) -> Path:
        origin = str(asked_by.resolve().parent)
        if "ORIGIN" in text:
            return Path(text.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
        return self._station.path(text)

    def _in(self, folder: Path, name: str) -> Path | None:
        file = folder / name
        return file if file.is_file() and self._suits(file) else None

    def _suits(self, file: Path) -> bool:
        machine = _machine_of(file)
        return machine is None or machine == self._station.machine.architecture

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
def _machine_of(file: Path) -> str | None:
    """The processor that a library is for; None: the file does not say, as linker scripts."""
    found = read_shared_object(file)
    return found.machine if found else None
