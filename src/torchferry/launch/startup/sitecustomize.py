"""Calls `autoload` after `import torch` where PyTorch does not do so itself (before 2.5, or told not to).

Only `ferry run` puts this folder on PYTHONPATH. Python imports a module of this name when it starts; another one
further down the path, which this one hides, is run as well.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).resolve().parent


class _AfterTorch:
    """Finds torch as it would be found without it, and has `autoload` called when torch is ready."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: object) -> None:
        run = loader.exec_module  # type: ignore[attr-defined]

        def run_and_autoload(module: ModuleType) -> None:
            run(module)
            from torchferry.launch.autoload import autoload

            autoload()

        loader.exec_module = run_and_autoload  # type: ignore[attr-defined]


class _BeforePlugin:
    """Has torch imported first where a program imports the plugin of an emulated device: it is found afterwards."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._plugin:
            return None
        sys.meta_path.remove(self)
        import torch  # noqa: F401

        module = sys.modules.get(name)
        spec = importlib.util.find_spec(name) if module is None else module.__spec__
        if module is not None and spec is not None:
            spec.loader = _Imported(spec, module)  # type: ignore[assignment]
        return spec


class _Imported:
    """Hands out a module that was imported while it was looked for; Python would import it once more."""

    def __init__(self, spec: ModuleSpec, module: ModuleType) -> None:
        self._spec = spec
        self._module = module
        self._loader = spec.loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = self._loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)


def _emulated_plugin() -> str:
    try:
        return str(json.loads(os.environ.get("TORCHFERRY_EMULATE", ""))["module"])
    except (ValueError, TypeError, KeyError):
        return ""


def _run_hidden_one() -> None:
    path = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = PathFinder.find_spec(__name__, path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if _emulated_plugin():
    sys.meta_path.insert(0, _BeforePlugin(_emulated_plugin()))
sys.meta_path.insert(0, _AfterTorch())
_run_hidden_one()
