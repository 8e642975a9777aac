"""The account of what would be on a CUDA device, in the reference of a proof: kept by the compiled half."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch

from torchferry.sim import native

_HOST = -1
_NO_STORAGE = -2


class NativePlacement:
    """`torchferry.runtime.host.placement.Placement`, by marks on storages. Asking passes no dispatcher and no mode."""

    def __init__(self, library: Path) -> None:
        native.load(library)
        functions = ctypes.PyDLL(str(library))
        self._of, self._put = _typed(functions, "tensor")
        self._of_storage, self._put_storage = _typed(functions, "storage")

    def begin(self) -> None:
        """Keep account from now on."""
        native.watch_places(True)

    def end(self) -> None:
        """Keep account no longer."""
        native.watch_places(False)

    def of(self, tensor: torch.Tensor) -> tuple[bool, int | None]:
        """Whether it has a memory of its own, and the number of the device it is on; None: the host."""
        place = self._of(tensor._cdata)
        return place != _NO_STORAGE, place if place >= 0 else None

    def of_storage(self, storage: Any) -> int | None:
        """The number of the device that an UntypedStorage is on; None: the host."""
        place = self._of_storage(storage._cdata)
        return place if place >= 0 else None

    def put(self, tensor: torch.Tensor, index: int | None) -> None:
        """Say where a tensor is."""
        self._put(tensor._cdata, _HOST if index is None else index)

    def put_storage(self, storage: Any, index: int | None) -> None:
        """Say where an UntypedStorage is."""
        self._put_storage(storage._cdata, _HOST if index is None else index)

    def set_current(self, index: int) -> None:
        """Say which device "cuda" without a number means in this thread."""
        native.set_current_place(index)


def _typed(functions: ctypes.PyDLL, kind: str) -> tuple[Any, Any]:
    of, put = getattr(functions, f"ferry_place_of_{kind}"), getattr(functions, f"ferry_put_{kind}")
    of.argtypes, of.restype = [ctypes.c_void_p], ctypes.c_int
    put.argtypes, put.restype = [ctypes.c_void_p, ctypes.c_int], None
    return of, put
