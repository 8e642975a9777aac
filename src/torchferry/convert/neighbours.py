"""The other modules of a project, read only when a rule asks what a name imported from one of them is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torchferry.convert.filesystem import read_file
from torchferry.source.decode import UndecodableError, decode
from torchferry.source.module import ParseError, PythonModule
from torchferry.source.scopes import Binding, BindingKind

_DEPTH = 5  # re-exports that are followed
_LARGEST = 2_000_000  # bytes; generated modules are not worth the time
_SOURCE_FOLDERS = ("", "src")


@dataclass(frozen=True)
class Definition:
    """Where a name of the project is defined."""

    module: PythonModule
    path: str
    binding: Binding
    attributes: tuple[str, ...] = ()  # what is asked of the definition: a method, a class attribute


class Neighbours:
    """Finds definitions across the modules of one project; knows nothing when there is no folder."""

    def __init__(self, root: Path | None = None, well_known: frozenset[str] = frozenset()) -> None:
        self._root = root
        self._well_known = well_known
        self._modules: dict[str, PythonModule | None] = {}

    def module(self, path: str) -> PythonModule | None:
        """A module by its path in the project; None if it is not there or can't be read."""
        if path not in self._modules:
            self._modules[path] = self._read(path)
        return self._modules[path]

    def find(self, path: str, qualified: str) -> Definition | None:
        """What a dotted name, as the module at `path` imports it, is in the project."""
        return self._find(path, qualified, _DEPTH)

    def module_path(self, path: str, qualified: str) -> str | None:
        """The file of a dotted module name, as the module at `path` imports it."""
        found = self._split(path, qualified)
        return found[0] if found and not found[1] else None

    def _find(self, path: str, qualified: str, depth: int) -> Definition | None:
        found = self._split(path, qualified)
        if found is None or not found[1] or not depth:
            return None
        where, (name, *attributes) = found
        module = self.module(where)
        bindings = module.scopes.root.bindings.get(name) if module else None
        if module is None or not bindings:
            return self._through_star(where, module, [name, *attributes], depth)
        binding = bindings[-1]
        if binding.kind is BindingKind.IMPORT:
            return self._find(where, ".".join((binding.qualified, *attributes)), depth - 1)
        return Definition(module, where, binding, tuple(attributes))

    def _through_star(
        self, path: str, module: PythonModule | None, names: list[str], depth: int
    ) -> Definition | None:
        for star in module.scopes.stars if module else ():
            found = self._find(path, f"{star.rstrip('.')}.{'.'.join(names)}" if star else "", depth - 1)
            if found is not None:
                return found
        return None

    def _split(self, path: str, qualified: str) -> tuple[str, list[str]] | None:
        """The file that the longest beginning of a dotted name stands for, and the names behind it."""
        level = len(qualified) - len(qualified.lstrip("."))
        names = [name for name in qualified.lstrip(".").split(".") if name]
        for folder in self._roots(path, level):
            for count in range(len(names), -1 if level else 0, -1):
                where = self._file(folder, names[:count])
                if where is not None:
                    return where, names[count:]
        return None

    def _roots(self, path: str, level: int) -> list[PurePosixPath]:
        """The folders in which Python would look: of a relative import one, else the script's and the project's."""
        folder = PurePosixPath(path).parent
        if level:
            for _ in range(level - 1):
                folder = folder.parent
            return [folder]
        return [folder, *map(PurePosixPath, _SOURCE_FOLDERS)]

    def _file(self, folder: PurePosixPath, names: list[str]) -> str | None:
        if self._root is None:
            return None
        place = folder.joinpath(*names)
        choices = [place / "__init__.py"]
        if names:
            choices.insert(0, place.with_name(f"{place.name}.py"))
        return next((str(choice) for choice in choices if os.path.isfile(self._root / choice)), None)

    def _read(self, path: str) -> PythonModule | None:
        if self._root is None:
            return None
        try:
            data = read_file(os.path.join(self._root, path))
            if len(data) > _LARGEST:
                return None
            return PythonModule(decode(data), self._well_known)
        except (OSError, UndecodableError, ParseError):
            return None
