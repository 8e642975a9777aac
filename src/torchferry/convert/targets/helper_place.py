"""Where in a project a module goes that converted files import, and how each of them imports it.

A module of a package must find it when the package is installed, a script when it is started from anywhere, and a
module in a plain folder from wherever its importers start. So the imports of the project's files are looked at.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.convert.discover import read_file

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(?:\(([^)]*)\)|([^\n#;(]*))|import[ \t]+([^\n#;]*))",
    re.MULTILINE,
)
_MAIN = re.compile(rb"^if[ \t(]+(?:__name__|['\"]__main__)", re.MULTILINE)
_NAME = re.compile(rb"[^\W\d][\w.]*")
_PACKAGING = ("setup.py", "pyproject.toml", "setup.cfg")
_LARGEST = 2_000_000  # bytes; beyond that it is data written as Python


@dataclass
class _Source:
    """What the imports of one file say."""

    path: str
    absolute: set[str] = field(default_factory=set)  # dotted names; `from a import b` gives a and a.b
    is_relative: bool = False  # it imports from its own package
    is_script: bool = False
    changes_path: bool = False  # it finds its modules by a way of its own

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)


@dataclass
class Placement:
    """By file: the folder of the module that it imports, and the package to import it from, if from one."""

    folders: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)


def place_helper(folder: Path, paths: Iterable[str]) -> Placement:
    """Look at the Python files of a project, given by their paths relative to its folder."""
    return _Project(folder, {path.replace(os.sep, "/") for path in paths}).placement()


class _Project:
    def __init__(self, folder: Path, paths: set[str]) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self.paths = paths
        self.sources = [_read(folder, path) for path in sorted(paths) if path.endswith((".py", ".pyw"))]
        self.importers: dict[str, set[str]] = {}  # file -> the folders from which others import it
        self.packages_of: dict[str, set[str]] = {}  # file -> the top packages of the project that it imports
        for source in self.sources:
            for name in source.absolute:
                self._note_import(source, name)

    def _note_import(self, source: _Source, name: str) -> None:
        for place in self._search_path(source):
            target = posixpath.join(place, *name.split("."))
            file = next(
                (file for file in (f"{target}.py", f"{target}/__init__.py") if file in self.paths), ""
            )
            if not file:
                continue
            self.importers.setdefault(file, set()).add(place)
            top = self._top_package(posixpath.dirname(file))
            if top is not None and posixpath.dirname(top) == place:
                self.packages_of.setdefault(source.path, set()).add(top)
            return

    def _search_path(self, source: _Source) -> Iterator[str]:
        """Where a file may find modules, nearest first; for a module of a package, not within that package."""
        folder = source.folder
        top = self._top_package(folder)
        if top is not None and not source.is_script:
            if not top:
                return
            folder = posixpath.dirname(top)
        while folder:
            yield folder
            folder = posixpath.dirname(folder)
        yield ""
        yield "src"

    def _top_package(self, folder: str) -> str | None:
        """The outermost package that a folder belongs to, "" if that is the project's folder itself."""
        top: str | None = None
        while posixpath.join(folder, "__init__.py") in self.paths:
            top = folder
            if not folder:
                break
            folder = posixpath.dirname(folder)
        return top

    def placement(self) -> Placement:
        found = Placement()
        scripts: list[_Source] = []
        for source in self.sources:
            place = self._in_package(source)
            if place is None:
                scripts.append(source)
                found.folders[source.path] = self._outside(source)
                continue
            found.folders[source.path] = place[0]
            if place[1]:
                found.packages[source.path] = place[1]
        packages = {place for path, place in found.folders.items() if path in found.packages}
        for source in scripts:
            top = next((top for top in sorted(self.packages_of.get(source.path, ())) if top in packages), "")
            # A script that imports the package anyway needs no copy of its own.
            if top and not source.changes_path and source.path not in self.importers:
                found.folders[source.path], found.packages[source.path] = top, posixpath.basename(top)
        return found

    def _in_package(self, source: _Source) -> tuple[str, str] | None:
        """Folder and package for a module of a package; None for a file that is none."""
        top = self._top_package(source.folder)
        if top is None:
            return (source.folder, ".") if source.is_relative else None
        if not top and not source.is_relative and self._imports_itself(source):
            return top, self.name
        if not source.is_relative and not self._is_module_of(source, top):
            return None
        depth = len(source.folder.split("/")) if source.folder else 0
        dots = "." * (1 + depth - (len(top.split("/")) if top else 0))
        if not top:
            return top, dots
        above = posixpath.dirname(top)
        if self._is_application(top, above):
            return above, ""
        return top, dots if source.is_relative else posixpath.basename(top)

    def _imports_itself(self, source: _Source) -> bool:
        """Whether a file of a project that is a package knows it by the name of its folder."""
        return any(name.partition(".")[0] == self.name for name in source.absolute)

    def _is_module_of(self, source: _Source, top: str) -> bool:
        """Whether a file in a package's folder is one of its modules, and not a script that only lies there."""
        importers = self.importers.get(source.path)
        if importers:
            return posixpath.dirname(top) in importers
        return not source.is_script or top in self.packages_of.get(source.path, ())

    def _is_application(self, top: str, above: str) -> bool:
        """Whether scripts beside a package use it, and nobody installs it: then they all find what lies there."""
        places = {above, posixpath.dirname(above)} if posixpath.basename(above) == "src" else {above}
        for place in places:
            if any(os.path.exists(os.path.join(self.folder, place, name)) for name in _PACKAGING):
                return False
        return any(
            source.folder == above and top in self.packages_of.get(source.path, ()) for source in self.sources
        )

    def _outside(self, source: _Source) -> str:
        """A folder on the module path wherever this file is used."""
        importers = self.importers.get(source.path)
        return min(importers, key=lambda place: (len(place), place)) if importers else source.folder


def _read(folder: Path, path: str) -> _Source:
    source = _Source(path)
    try:
        data = read_file(os.path.join(folder, path))
    except OSError:
        return source
    if len(data) > _LARGEST:
        return source
    source.is_script = _MAIN.search(data) is not None
    source.changes_path = b"sys.path" in data
    for module, in_brackets, on_line, plain in _IMPORT.findall(data):
        if module.startswith(b"."):
            source.is_relative = True
        elif module:
            name = module.decode("ascii", "replace")
            source.absolute.add(name)
            names = _NAME.findall(re.sub(rb"\bas\s+\w+|#[^\n]*", b"", in_brackets or on_line))
            source.absolute.update(f"{name}.{leaf.decode('ascii', 'replace')}" for leaf in names)
        else:
            for part in plain.split(b","):
                source.absolute.update(name.decode("ascii", "replace") for name in _NAME.findall(part)[:1])
    return source
