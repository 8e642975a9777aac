"""Puts every CUDA name where the vendor's table says: under the vendor's module, under another name, or nowhere."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from torchferry.vendors.model import Api, Support, Vendor, natural_name


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
            # torch's own code asks for whatever might be there
            caller = str(sys._getframe(1).f_globals.get("__name__", ""))
            if caller.partition(".")[0] != "torch":
                warnings.warn(
                    f"{full}: whether {self._company} has it is unknown; the simulated device does",
                    stacklevel=2,
                )
                setattr(self, name, uncertain[name])
            return uncertain[name]
        why = f": {absent[name]}" if name in absent else ""
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'{why}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._uncertain} - {"_absent", "_uncertain", "_company"})


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


_CUDA = "torch.cuda"


class Surface:
    """The vendor's table applied to what the simulator implements; names are CUDA's, in full."""

    def __init__(self, vendor: Vendor, implemented: Mapping[str, Any], submodules: Iterable[str]) -> None:
        self._vendor = vendor
        self._implemented = implemented
        self._submodules = frozenset(submodules)
        self._prefix = vendor.torch_module + "."
        self._renamed_classes: dict[tuple[type, str], type] = {}

    def fill(self, tree: Tree) -> None:
        """Place what the vendor has, then what it may have; then say of each other name why it isn't there."""
        listed = set(self._vendor.apis) | set(self._implemented) | self._submodules
        by_support: dict[Support, list[str]] = {support: [] for support in Support}
        for name in sorted(listed):
            api = self._api(name)
            if name.startswith(_CUDA + ".") or api.name.startswith(self._prefix):
                by_support[api.support].append(name)
        for name in by_support[Support.SAME] + by_support[Support.RENAMED]:
            self._place(tree, name)
        for name in by_support[Support.UNKNOWN]:
            self._place_uncertain(tree, name)
        for name in by_support[Support.RENAMED]:
            natural = natural_name(name, self._vendor.torch_module)
            path = natural[len(self._prefix) :]
            if natural.startswith(self._prefix) and not tree.has(path):
                tree.absent(path, f"{self._vendor.company} calls it {self._api(name).name}")
        for name in by_support[Support.UNSUPPORTED]:
            path = self._path_beside_siblings(name)
            if not tree.has(path):
                tree.absent(path, f"{self._vendor.company} does not have it")

    def _api(self, name: str) -> Api:
        if name in self._vendor.apis or not self._vendor.apis_complete:
            known = self._vendor.api(name)
            if known.name or known.support is Support.UNSUPPORTED:
                return known
            return Api(Support.UNKNOWN, natural_name(name, self._vendor.torch_module))
        return Api(Support.UNSUPPORTED, "")

    def _place(self, tree: Tree, name: str) -> None:
        target = self._api(name).name
        if not target.startswith(self._prefix):
            return
        path = target[len(self._prefix) :]
        if name in self._implemented:
            tree.place(path, self._under_name(self._implemented[name], name, path))
        elif name in self._submodules:
            tree.module(path)
        elif not tree.has(path):
            tree.absent(path, f"{self._vendor.company} has it, but the simulated device does not")

    def _place_uncertain(self, tree: Tree, name: str) -> None:
        path = self._path_beside_siblings(name)
        if name in self._implemented:
            tree.uncertain(path, self._implemented[name])
        elif name in self._submodules:
            tree.module(path)
        else:
            why = f"whether {self._vendor.company} has it is unknown, and the simulated device does not"
            tree.absent(path, why)

    def _path_beside_siblings(self, name: str) -> str:
        """Where a name would be: in its module, which the vendor may have renamed."""
        module, _, leaf = name.rpartition(".")
        renamed = self._vendor.apis.get(module)
        if renamed is not None and renamed.support is Support.RENAMED:
            full = f"{renamed.name}.{leaf}"
        else:
            full = natural_name(name, self._vendor.torch_module)
        return full[len(self._prefix) :]

    def _under_name(self, value: Any, name: str, path: str) -> Any:
        """A class that the vendor calls otherwise gets the vendor's name."""
        leaf = path.rpartition(".")[2]
        if not isinstance(value, type) or leaf == name.rpartition(".")[2]:
            return value
        key = (value, leaf)
        if key not in self._renamed_classes:
            body = {"__module__": self._vendor.torch_module, "__doc__": value.__doc__}
            self._renamed_classes[key] = type(value)(leaf, (value,), body)
        return self._renamed_classes[key]
