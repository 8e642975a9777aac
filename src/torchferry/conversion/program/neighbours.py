"""The other modules of a project, read only when a rule asks what a name imported from one of them is."""

from __future__ import annotations

import ast
import contextlib
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from torchferry.conversion.discover import read_file
from torchferry.source.decode import UndecodableError, decode
from torchferry.source.module import ParseError, PythonModule
from torchferry.source.scopes import Binding, BindingKind, qualified_in

_DEPTH = 5  # re-exports that are followed
_LARGEST = 2_000_000  # bytes; generated modules are not worth the time
_ALL = 100_000_000  # bytes of a project that are searched for the users of a name
_USERS = 40  # modules that are read because they may use a name
_SOURCE_FOLDERS = ("", "src")
_WORD = re.compile(rb"[^\W\d]\w*")


@dataclass(frozen=True)
class Definition:
    """Where a name of the project is defined."""

    module: PythonModule
    path: str
    binding: Binding
    attributes: tuple[str, ...] = ()  # what is asked of the definition: a method, a class attribute
    name: str = ""  # what its own module calls it

    def binding_in(self, module: PythonModule) -> Binding | None:
        """The definition in its module as that is now: one that is being converted may differ from its file."""
        return self.binding if module is self.module else module.exported(self.name)


@dataclass(frozen=True)
class Import:
    """How a module gets at another one, or at a name of it."""

    path: str  # of the module that imports
    binding: Binding
    alias: str  # what it calls it
    name: str = ""  # the name of the other module that it imports; "" is the module itself
    is_star: bool = False


class Neighbours:
    """Finds definitions across the modules of one project; knows nothing when there is no folder.

    `paths` are the Python files of the project, for those who ask which of them use a name. Without them it is the
    files that lie directly in the folder.
    """

    def __init__(
        self,
        root: Path | None = None,
        well_known: frozenset[str] = frozenset(),
        paths: Sequence[str] | None = None,
    ) -> None:
        self._root = root
        self._well_known = well_known
        self._paths = paths
        self._modules: dict[str, PythonModule | None] = {}
        self._imports: dict[tuple[str, bytes], tuple[Import, ...]] = {}
        self._words: dict[str, frozenset[bytes]] = {}
        self._matches: dict[re.Pattern[bytes], bool] = {}
        self._naming: dict[str, list[str]] = {}  # by the path of the module that is named
        self._imported: dict[str, bool] = {}  # by path
        self._files: dict[str, str | None] = {}  # of modules, by their path without a suffix

    def module(self, path: str) -> PythonModule | None:
        """A module by its path in the project; None if it is not there or can't be read."""
        if path not in self._modules:
            module = None
            with contextlib.suppress(OSError, UndecodableError, ParseError):
                data = read_file(os.path.join(self._root, path)) if self._root is not None else None
                if data is not None and len(data) <= _LARGEST:
                    module = PythonModule(decode(data), self._well_known)
            self._modules[path] = module
        return self._modules[path]

    def origin(self, path: str, qualified: str, depth: int = _DEPTH) -> str:
        """The dotted name of another package that a module of the project hands on under this one; "" if none."""
        found = self._split(path, qualified)
        if found is None:
            return qualified if depth < _DEPTH else ""
        where, names = found
        module = self.module(where) if names and depth else None
        binding = module.exported(names[0]) if module else None
        if binding is None or binding.kind is not BindingKind.IMPORT:
            return ""
        return self.origin(where, ".".join((binding.qualified, *names[1:])), depth - 1)

    def reached(self, path: str, qualified: str, depth: int = _DEPTH) -> str | None:
        """The file of what the module at `path` imports under a dotted name: a module, or where it is defined."""
        split = self._split(path, qualified)
        if split is None or not split[1] or not depth:
            return split[0] if split and not split[1] else None
        found = self.find(path, qualified)
        if found is not None:
            return found.path
        where, (name, *rest) = split
        module = self.module(where)
        binding = module.exported(name) if module else None
        if binding is None or binding.kind is not BindingKind.IMPORT:
            return None
        return self.reached(where, ".".join((binding.qualified, *rest)), depth - 1)

    def importers(self, path: str, word: str) -> tuple[Import, ...]:
        """The imports of a name of a module, or of the module itself, by modules that have this word."""
        return self._known_importers(path, word, _word(word))

    def is_imported(self, path: str) -> bool:
        """Whether another module of the project imports this one, or something of it."""
        if path not in self._imported:
            folder = posixpath.dirname(path)
            # Those beside it first: most often it is one of them, and the others need not be read.
            users = sorted(self._texts_naming(path), key=lambda other: posixpath.dirname(other) != folder)
            self._imported[path] = any(self._imports_of(other, path) for other in users)
        return self._imported[path]

    def _imports_of(self, other: str, path: str) -> bool:
        module = self.module(other)
        names: set[str] = set()
        for _, binding in module.scopes.imports if module else ():
            names.add(binding.qualified)
            if isinstance(binding.node, ast.Import):  # `import a.b` binds a
                names.update(alias.name for alias in binding.node.names)
        return any((split := self._split(other, name)) and split[0] == path for name in sorted(names))

    def importers_with_member(self, path: str, name: str) -> tuple[Import, ...]:
        """The imports of anything from a module, by modules that ask something for this attribute or key."""
        return self._known_importers(path, name, _member(name))

    def _known_importers(self, path: str, word: str, pattern: re.Pattern[bytes]) -> tuple[Import, ...]:
        key = path, pattern.pattern
        if key not in self._imports:
            self._imports[key] = tuple(self._through_packages(path, word, pattern, _DEPTH))
        return self._imports[key]

    def _through_packages(
        self, path: str, word: str, pattern: re.Pattern[bytes], depth: int
    ) -> Iterator[Import]:
        """A package that imports a name hands it on to those who import the package."""
        for item in self._importers(path, word, pattern):
            yield item
            if depth and item.name and os.path.basename(item.path) == "__init__.py":
                name = item.alias if item.name == word else word
                further = pattern if name == word else _word(name)
                for other in self._through_packages(item.path, name, further, depth - 1):
                    if other.name in (item.alias, "") or other.is_star:
                        yield replace(other, name=other.name and item.name)

    def imported(self, path: str, module: PythonModule) -> tuple[str, ...]:
        """The modules of the project that a module imports, in the order of their paths."""
        found = {
            split[0]
            for _, binding in module.scopes.imports
            if (split := self._split(path, binding.qualified))
        }
        return tuple(sorted(found - {path}))

    def any_text(self, word: bytes, *absent: bytes) -> bool:
        """Whether a module of the project has this text, and none of those."""
        return any(
            word in data and not any(other in data for other in absent) for data in self._texts.values()
        )

    def any_match(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether a pattern is found in a module of the project."""
        if pattern not in self._matches:
            self._matches[pattern] = any(map(pattern.search, self._texts.values()))
        return self._matches[pattern]

    def has_member(self, path: str, name: str) -> bool:
        """Whether a module asks something for this attribute or key."""
        module = self.module(path)
        return module is not None and _member(name).search(module.data) is not None

    def _importers(self, path: str, word: str, pattern: re.Pattern[bytes]) -> Iterator[Import]:
        users = []
        for other in self._texts_naming(path):
            if other not in self._words:
                self._words[other] = frozenset(_WORD.findall(self._texts[other]))
            if word.encode() in self._words[other] and pattern.search(self._texts[other]):
                users.append(other)
        for other in users[:_USERS]:
            module = self.module(other)
            for alias, binding in module.scopes.imports if module else ():
                yield from self._import(other, alias, binding, path, word)

    def _texts_naming(self, path: str) -> list[str]:
        """The files that may import a module: they name it, or lie in the package that it is the file of."""
        if path not in self._naming:
            place = PurePosixPath(path)
            is_package = place.name == "__init__.py"
            folder = f"{place.parent}/" if is_package and place.parent.name else ""
            stem = (place.parent.name if is_package else place.stem).encode()
            self._naming[path] = [
                other
                for other, data in self._texts.items()
                if other != path and (stem in data or (folder and other.startswith(folder)))
            ]
        return self._naming[path]

    def _import(self, other: str, alias: str, binding: Binding, path: str, word: str) -> Iterator[Import]:
        """An import, if it is one of the module at `path`; a name may have come through other modules."""
        split = self._split(other, binding.qualified)
        if split is None:
            return
        if alias == "*":
            found = self.find(other, qualified_in(binding.qualified, word))
            if found is not None and split[0] == path:
                yield Import(other, binding, word, word, is_star=True)
        elif split[0] == path:
            yield Import(other, binding, alias, ".".join(split[1]))

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        """The Python files of the project, by path, in order; read when a user of a name is looked for."""
        texts: dict[str, bytes] = {}
        left = _ALL
        for path in self._python_files():
            try:
                data = read_file(os.path.join(self._root or "", path))
            except OSError:
                continue
            left -= len(data)
            if left < 0:
                break
            if len(data) <= _LARGEST:
                texts[path.replace(os.sep, "/")] = data
        return texts

    def _python_files(self) -> list[str]:
        if self._root is None:
            return []
        if self._paths is not None:
            return sorted(self._paths)
        try:
            return sorted(name for name in os.listdir(self._root) if name.endswith(".py"))
        except OSError:
            return []

    def find(self, path: str, qualified: str, depth: int = _DEPTH) -> Definition | None:
        """What a dotted name, as the module at `path` imports it, is in the project."""
        found = self._split(path, qualified)
        if found is None or not found[1] or not depth:
            return None
        where, (name, *attributes) = found
        module = self.module(where)
        binding = module.exported(name) if module else None
        if module is None or binding is None:
            rest = ".".join([name, *attributes])
            stars = module.scopes.stars if module else ()
            through = (self.find(where, qualified_in(star, rest), depth - 1) for star in stars if star)
            return next((definition for definition in through if definition is not None), None)
        if binding.kind is BindingKind.IMPORT:
            return self.find(where, ".".join((binding.qualified, *attributes)), depth - 1)
        return Definition(module, where, binding, tuple(attributes), name)

    def _split(self, path: str, qualified: str) -> tuple[str, list[str]] | None:
        """The file that the longest beginning of a dotted name stands for, and the names behind it."""
        level = len(qualified) - len(qualified.lstrip("."))
        names = [name for name in qualified.lstrip(".").split(".") if name]
        folder = posixpath.dirname(path)
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        # Where Python would look: for a relative import in one folder, else in the script's and the project's.
        for root in [folder] if level else [folder, *_SOURCE_FOLDERS]:
            for count in range(len(names), -1 if level else 0, -1):
                where = self._file(root, names[:count])
                if where is not None:
                    return where, names[count:]
        return None

    def _file(self, folder: str, names: list[str]) -> str | None:
        if self._root is None:
            return None
        place = "/".join([folder, *names] if folder else names) or "."
        if place not in self._files:
            choices = [f"{place}.py"] if names else []
            choices.append(os.path.normpath(f"{place}/__init__.py"))
            self._files[place] = next(
                (choice for choice in choices if os.path.isfile(os.path.join(self._root, choice))), None
            )
        return self._files[place]


def _word(word: str) -> re.Pattern[bytes]:
    return re.compile(rb"\b" + re.escape(word.encode()) + rb"\b")


def _member(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"\.%b\b|[\"']%b[\"']" % ((re.escape(name.encode()),) * 2))
