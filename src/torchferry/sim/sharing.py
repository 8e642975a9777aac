"""Device tensors between processes: their bytes go into shared memory, and the other process computes on the same ones.

It is done for storages, of which PyTorch makes tensors, parameters and modules again: the device's bytes are shared
as PyTorch shares those of the host, by descriptor or by file, as the program has chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import context, reduction
from typing import Any, NoReturn

import torch
import torch.multiprocessing.reductions as torch_reductions

from torchferry.sim import native

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]
# (host storage, device) -> the device storage around it: what is sent twice, or comes back, is one storage again.
_known: Any = torch_reductions.SharedCache()


def install() -> None:
    """Let device storages go where multiprocessing sends them."""
    of_host: Callable[[Any], Reduced] = torch_reductions.reduce_storage

    def reduce_storage(storage: torch.UntypedStorage) -> Reduced:
        if storage.device.type != torch._C._get_privateuse1_backend_name():
            return of_host(storage)
        try:
            return _reduced(storage, of_host)
        except Exception as error:
            if context.get_spawning_popen() is not None:  # the program itself starts a process here
                raise
            # A queue pickles in a thread that would lose the error, and let the receiver wait for ever.
            return _raise_here, (f"a tensor could not be sent: {error}",)

    torch_reductions.reduce_storage = reduce_storage
    reduction.register(torch.UntypedStorage, reduce_storage)


def _reduced(storage: torch.UntypedStorage, of_host: Callable[[Any], Reduced]) -> Reduced:
    index = storage.device.index or 0
    if storage.nbytes() == 0:
        return _empty, (index,)
    tensor = _bytes_of(storage)
    host = native.host_bytes(tensor).untyped_storage()
    rebuild_host, arguments = of_host(host)
    native.follow_host_bytes(tensor)  # sharing has moved the host's bytes
    _known[_key(host, index)] = _weak(storage)
    return _rebuild, (index, rebuild_host, arguments)


def _rebuild(
    index: int, rebuild_host: Callable[..., Any], arguments: tuple[Any, ...]
) -> torch.UntypedStorage:
    """A device storage over the bytes that another process, or this one, has shared."""
    host: torch.UntypedStorage = rebuild_host(*arguments)
    key = _key(host, index)
    reference = _known.get(key)
    if reference is not None:
        storage: torch.UntypedStorage | None = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
        if storage is not None:
            return storage
    storage = native.device_bytes(_bytes_of(host), index).untyped_storage()
    _known[key] = _weak(storage)
    return storage


def _empty(index: int) -> torch.UntypedStorage:
    device = torch.device(torch._C._get_privateuse1_backend_name(), index)
    return torch.empty(0, dtype=torch.uint8, device=device).untyped_storage()


def _raise_here(message: str) -> NoReturn:
    raise RuntimeError(message)


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _key(host: torch.UntypedStorage, index: int) -> tuple[int, int]:
    return host._cdata, index


def _weak(storage: torch.UntypedStorage) -> Any:
    return torch_reductions.StorageWeakRef(storage)  # type: ignore[no-untyped-call]
