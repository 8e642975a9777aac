"""The libraries of an emulated toolkit, loaded into this process so that the plugin finds them by their names."""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass
from pathlib import Path

from torchferry.emulate.toolkits import Toolkit
from torchferry.errors import RunError


@dataclass(frozen=True)
class FunctionUse:
    """How often a function of an operator was called, and whether there is one."""

    name: str
    calls: int
    is_missing: bool


class Libraries:
    """What was loaded."""

    def __init__(self, toolkit: Toolkit, folder: Path) -> None:
        self._toolkit = toolkit
        self._loaded = [_load(folder / part.name) for part in toolkit.parts]

    def configure(self, devices: int, memory: int, card: str, shared_randomness: bool) -> None:
        """Say which devices there are, before anything else is called."""
        configure = self._function(self._toolkit.configure)
        if configure is None:
            raise RunError(f"the emulated {self._toolkit.name} can't be told its devices; build it anew")
        configure.argtypes = (ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p)
        configure.restype = None
        configure(devices, memory, card.encode())
        share = self._function(self._toolkit.share_randomness)
        if share is not None:
            share.argtypes, share.restype = (ctypes.c_int,), None
            share(int(shared_randomness))

    def uses(self) -> list[FunctionUse]:
        """Which functions of operators were called until now."""
        uses = self._function(self._toolkit.uses)
        if uses is None:
            return []
        uses.argtypes, uses.restype = (), ctypes.c_char_p
        found = json.loads((uses() or b"{}").decode("utf-8", "replace"))
        return [_use(name, told) for name, told in found.items()]

    def _function(self, name: str) -> ctypes._NamedFuncPointer | None:
        found = (getattr(library, name, None) for library in self._loaded)
        return next((function for function in found if function is not None), None)


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path), os.RTLD_GLOBAL | os.RTLD_NOW)
    except OSError as error:
        raise RunError(f"{path.name} of the emulated device can't be loaded: {error}") from None


def _use(name: str, told: object) -> FunctionUse:
    """A count, or one with a remark that there is no such function."""
    if isinstance(told, dict):
        return FunctionUse(name, int(told.get("calls", 0)), bool(told.get("missing")))
    return FunctionUse(name, int(str(told)), False)
