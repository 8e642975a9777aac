"""What the compiled half does for the reference of a proof, a process in which every device is the CPU."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch

from torchferry.sim import build, native

_HOST = -1
_NO_STORAGE = -2


def compute_as_cuda() -> None:
    """Let the CPU compute what a device computes, as the original of a proof needs it: autocast casts as CUDA's does,
    there are the operators of SyncBatchNorm, half precision is computed in single precision and rounded.

    The library is loaded, but no device is named or registered with torch: the process stays one with a CPU only.
    """
    native.load(build.library_path())
    native.use_cuda_autocast_policies()
    native.add_sync_batch_norm()
    native.compute_half_in_single()


def placement() -> NativePlacement:
    """What keeps account of which tensors would be on a device."""
    return NativePlacement(build.library_path())


class NativePlacement:
    """The account of what would be on a CUDA device (`runtime.host.devices.Placement`), by marks on storages. Asking
    passes no dispatcher and no mode."""

    def __init__(self, library: Path) -> None:
        native.load(library)
        functions = ctypes.PyDLL(str(library))
        self._of, self._put = _typed(functions, "tensor")
        self._of_storage, self._put_storage = _typed(functions, "storage")

    def begin(self) -> None:
        """Keep account from now on."""
        native.watch_places(True)

    def end(self) -> None:
        """Stop keeping account of tensors."""
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
