"""Reads a plugin's tables from its wheel, or the folder that it is unpacked in, without PyTorch of that release.

What can't be seen from outside is left out: gradients and casts (compiled), operators that are registered by hand in C++,
and names that are set when the plugin is imported.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from torchferry.errors import FerryError
from torchferry.operators.native_functions import operator_facts
from torchferry.text import Text
from torchferry.vendors.model import Vendor

from .plugin import Plugin

Folder = Path | zipfile.Path
_TABLE = "csrc/aten/npu_native_functions_by_codegen.yaml"
_QUANTIZED = "quant"
_TORCH = re.compile(r"^Requires-Dist: torch ?== ?(?P<torch>[\d.]*\d)", re.MULTILINE)
_VERSION = re.compile(r"^Version: (?P<version>\S+)$", re.MULTILINE)


class WheelError(FerryError):
    """A file that is no wheel of the plugin."""


def read_wheel(file: Path, vendor: Vendor) -> Plugin:
    """The tables of a wheel, or of the folder that it is unpacked in."""
    root = file if file.is_dir() else _opened(file)
    table = root.joinpath(vendor.plugin, *_TABLE.split("/"))
    if not table.is_file():
        raise WheelError(
            Text(
                f"{file}: has no {vendor.plugin}/{_TABLE}; give a wheel of {vendor.plugin}",
                f"{file}：没有 {vendor.plugin}/{_TABLE}；请给出 {vendor.plugin} 的 wheel",
            )
        )
    about = _metadata(root, vendor.plugin)
    operators = set(_operators(table.read_text("utf-8")))
    known = operators & operator_facts().keys()
    module = _Module(root, f"{vendor.plugin}.{vendor.device_type}")
    return Plugin(
        torch=_found(_TORCH, about),
        version=_found(_VERSION, about),
        operators=tuple(sorted(known)),
        custom=tuple(sorted(f"{vendor.device_type}::{name}" for name in operators - known)),
        autograd=(),
        autocast=(),
        names=tuple(sorted(name for name in module.names() if not name.startswith("_"))),
    )


def _opened(file: Path) -> zipfile.Path:
    try:
        return zipfile.Path(file)
    except (OSError, zipfile.BadZipFile) as error:
        raise WheelError(Text(f"{file}: {error}", f"{file}：{error}")) from error


def _metadata(root: Folder, plugin: str) -> str:
    for entry in root.iterdir():
        if entry.name.startswith(f"{plugin}-") and entry.name.endswith(".dist-info"):
            return entry.joinpath("METADATA").read_text("utf-8")
    return ""


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _operators(text: str) -> Iterator[str]:
    """Those for dense tensors: quantized ones have a section, what is for sparse ones alone has no other kernels."""
    for section, entries in import_module("yaml").safe_load(text).items():
        for entry in entries if isinstance(entries, list) and section != _QUANTIZED else ():
            if isinstance(entry, str) or "sparse" not in entry or "impl_ns" in entry:
                declared = entry if isinstance(entry, str) else entry["func"]
                yield declared.partition("(")[0].strip()


class _Module:
    """A module of the plugin, as its source binds names."""

    def __init__(self, root: Folder, name: str, seen: frozenset[str] = frozenset()) -> None:
        self._root = root
        self._name = name
        self._seen = seen | {name}
        place = root.joinpath(*name.split("."))
        self._folder = place if place.is_dir() else None
        file = place.joinpath("__init__.py") if self._folder else _beside(root, name)
        self._body = ast.parse(file.read_text("utf-8")).body if file.is_file() else []

    def names(self) -> set[str]:
        """What is bound when it has been imported, and the packages in it."""
        packages = (
            {entry.name for entry in self._folder.iterdir() if entry.is_dir()} if self._folder else set()
        )
        return set(self._bound(self._body)) | {name for name in packages if name.isidentifier()}

    def exported(self) -> set[str]:
        """What `from module import *` takes."""
        for node in self._body:
            if isinstance(node, ast.Assign) and "__all__" in _targets(node):
                try:
                    return set(ast.literal_eval(node.value))
                except ValueError:
                    break
        return {name for name in self._bound(self._body) if not name.startswith("_")}

    def _bound(self, body: list[ast.stmt]) -> Iterator[str]:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                yield from _targets(node)
            elif isinstance(node, ast.Import):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from self._imported(node)
            for part in ("body", "orelse", "handlers", "finalbody"):
                if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    yield from self._bound(getattr(node, part, []))

    def _imported(self, node: ast.ImportFrom) -> Iterator[str]:
        source = self._source_of(node)
        if node.level == 1 and node.module:
            yield node.module.partition(".")[0]  # importing from a module of the package binds it there
        for alias in node.names:
            if alias.name != "*":
                yield alias.asname or alias.name
            elif source not in self._seen:
                yield from _Module(self._root, source, self._seen).exported()

    def _source_of(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self._name.split(".")
        up = node.level - 1 if self._folder else node.level
        return ".".join([*parts[: len(parts) - up], *filter(None, [node.module])])


def _beside(root: Folder, name: str) -> Folder:
    *packages, last = name.split(".")
    return root.joinpath(*packages, f"{last}.py")


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def differences(outside: Plugin, running: dict[str, Any]) -> list[str]:
    """What only one of the two has: PyTorch's operators, the vendor's own, the names."""
    found = []
    known = operator_facts().keys()
    for what in ("operators", "custom", "names"):
        one, other = set(getattr(outside, what)), set(running[what])
        other &= known if what == "operators" else other
        found += [f"{what}: {name} is in the wheel alone" for name in sorted(one - other)]
        found += [f"{what}: {name} is in the running plugin alone" for name in sorted(other - one)]
    return found
