"""The module torch.<type> and its submodules: which names are there, which are not, which are not known to be."""

from __future__ import annotations

import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any


class SimulatedModule(ModuleType):
    """A module that explains each name it doesn't have, and warns once about a name that the vendor may not have."""

    def __init__(self, name: str, company: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)
        self._company = company
        self._absent: dict[str, str] = {}
        self._uncertain: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        absent, uncertain = self.__dict__.get("_absent", {}), self.__dict__.get("_uncertain", {})
        full = f"{self.__name__}.{name}"
        if name in uncertain:
            if not _asked_by_torch():
                warnings.warn(
                    f"{full}: it is not known whether {self._company} has it; the simulated device does",
                    stacklevel=2,
                )
                setattr(self, name, uncertain[name])
            return uncertain[name]
        why = f": {absent[name]}" if name in absent else ""
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'{why}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._uncertain} - {"_absent", "_uncertain", "_company"})


def _asked_by_torch() -> bool:
    """Whether the attribute is read by torch's own code, which asks for whatever might be there."""
    name = str(sys._getframe(2).f_globals.get("__name__", ""))
    return name == "torch" or name.startswith("torch.")


class Tree:
    """Builds the module and its submodules by dotted names below it."""

    def __init__(self, name: str, company: str) -> None:
        self.root = SimulatedModule(name, company)
        self._company = company
        self._modules: dict[str, SimulatedModule] = {"": self.root}

    def modules(self) -> dict[str, SimulatedModule]:
        """All modules by their full names."""
        return {module.__name__: module for module in self._modules.values()}

    def module(self, path: str) -> SimulatedModule:
        """The submodule of that path, made if need be."""
        if path not in self._modules:
            parent, _, leaf = path.rpartition(".")
            made = SimulatedModule(f"{self.root.__name__}.{path}", self._company)
            setattr(self.module(parent), leaf, made)
            self._modules[path] = made
        return self._modules[path]

    def has(self, path: str) -> bool:
        """Whether there is such a name, for certain."""
        found: Any = self.root
        for part in path.split("."):
            if isinstance(found, ModuleType) and part not in vars(found):
                return False
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True

    def place(self, path: str, value: Any) -> None:
        """Put a value where the path says."""
        parent, _, leaf = path.rpartition(".")
        setattr(self.module(parent), leaf, value)

    def switch(self, path: str, value: Any) -> None:
        """Put a value that programs set, on a plain object if its parent is no module."""
        parent, _, leaf = path.rpartition(".")
        if parent and parent not in self._modules:
            if not self.has(parent):
                self.place(parent, SimpleNamespace())
            setattr(self.find(parent), leaf, value)
        else:
            self.place(path, value)

    def find(self, path: str) -> Any:
        """The value at a path."""
        found: Any = self.root
        for part in path.split("."):
            found = getattr(found, part)
        return found

    def uncertain(self, path: str, value: Any) -> None:
        """Put a value that the vendor may not have."""
        parent, _, leaf = path.rpartition(".")
        self.module(parent)._uncertain[leaf] = value

    def absent(self, path: str, why: str) -> None:
        """Say why there is no such name; a module on the way that isn't there either has the same reason."""
        parent, _, leaf = path.rpartition(".")
        while parent not in self._modules:
            parent, _, leaf = parent.rpartition(".")
        self._modules[parent]._absent.setdefault(leaf, why)
