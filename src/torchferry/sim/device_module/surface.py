"""Puts every CUDA name where the vendor's table says: under the vendor's module, under another name, or nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torchferry.sim.device_module.tree import Tree
from torchferry.vendors.model import Api, Support, Vendor, natural_name

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
        names = sorted(name for name in listed if self._concerns(name))
        by_support: dict[Support, list[str]] = {support: [] for support in Support}
        for name in names:
            by_support[self._api(name).support].append(name)
        for name in by_support[Support.SAME] + by_support[Support.RENAMED]:
            self._place(tree, name)
        for name in by_support[Support.UNKNOWN]:
            self._place_uncertain(tree, name)
        for name in by_support[Support.RENAMED]:
            self._say_renamed(tree, name)
        for name in by_support[Support.UNSUPPORTED]:
            self._say_absent(tree, name, f"{self._vendor.company} does not have it")

    def _concerns(self, name: str) -> bool:
        return name.startswith(_CUDA + ".") or self._api(name).name.startswith(self._prefix)

    def _api(self, name: str) -> Api:
        if name in self._vendor.apis or not self._vendor.apis_complete:
            known = self._vendor.api(name)
            return known if known.name or known.support is Support.UNSUPPORTED else self._unknown(name)
        return Api(Support.UNSUPPORTED, "")

    def _unknown(self, name: str) -> Api:
        return Api(Support.UNKNOWN, natural_name(name, self._vendor.torch_module))

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
            tree.absent(path, f"{self._vendor.company} has it, the simulated device doesn't")

    def _say_renamed(self, tree: Tree, name: str) -> None:
        natural = natural_name(name, self._vendor.torch_module)
        path = natural[len(self._prefix) :]
        if natural.startswith(self._prefix) and not tree.has(path):
            tree.absent(path, f"{self._vendor.company} calls it {self._api(name).name}")

    def _place_uncertain(self, tree: Tree, name: str) -> None:
        path = self._path_beside_siblings(name)
        if name in self._implemented:
            tree.uncertain(path, self._implemented[name])
        elif name in self._submodules:
            tree.module(path)
        else:
            why = f"it is not known whether {self._vendor.company} has it, and the simulated device doesn't"
            tree.absent(path, why)

    def _say_absent(self, tree: Tree, name: str, why: str) -> None:
        path = self._path_beside_siblings(name)
        if not tree.has(path):
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
