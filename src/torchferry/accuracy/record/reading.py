"""The bytes of a tensor in memory of the host, without a trace in the program: no graph, no version, no hook."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.accuracy.record.outside import Outside, is_marked
from torchferry.observe.modes import unobserved


class Reader:
    """Gives addresses. What it has to copy is held until the next one is asked for."""

    def __init__(self) -> None:
        self._held: torch.Tensor | None = None
        self._staging: torch.Tensor | None = None  # memory that devices copy to quickly

    def address(self, tensor: torch.Tensor, outside: Outside) -> int:
        """Where `outside.nbytes` bytes lie: in the order of memory if it is dense, of its indices otherwise."""
        if outside.on_host and not (outside.has_marks and is_marked(tensor)):
            if outside.is_dense:
                return address_of(tensor) if outside.nbytes else 0
            with unobserved():
                self._held = pieces(tensor, outside).contiguous()
            return self._held.data_ptr()
        with unobserved():
            self._held = self._copied(flat(tensor, outside), outside)
        return self._held.data_ptr()

    def _copied(self, source: torch.Tensor, outside: Outside) -> torch.Tensor:
        if outside.on_host:
            return source
        staging = self._staging
        if staging is None or staging.numel() < outside.nbytes:
            staging = self._staging = staging_for(source.device, outside.nbytes)
        target = staging[: outside.nbytes].view(source.dtype)
        target.copy_(source)
        return target


def address_of(tensor: torch.Tensor) -> int:
    """Raises RuntimeError where there is no memory: zeros that autograd only notes down have none."""
    address = tensor.data_ptr()
    if not address:
        raise RuntimeError("no memory")
    return address


def pieces(tensor: torch.Tensor, outside: Outside) -> torch.Tensor:
    """The tensor with repeated elements once."""
    if not outside.repeats:
        return tensor
    shape = [1 if step == 0 else n for n, step in zip(outside.shape, outside.stride, strict=True)]
    return tensor.as_strided(shape, outside.stride)


def flat(tensor: torch.Tensor, outside: Outside) -> torch.Tensor:
    """In one dimension, in the order in which it is kept. Call it inside `unobserved()`."""
    if outside.has_marks and is_marked(tensor):
        # a copy keeps the order of memory where the tensor is dense
        copy: torch.Tensor = torch.empty_like(pieces(tensor, outside), memory_format=torch.preserve_format)
        tensor = copy.copy_(pieces(tensor, outside))
    if outside.is_dense:
        return tensor.as_strided((outside.elements,), (1,))
    return pieces(tensor, outside).contiguous().view(-1)


def staging_for(device: torch.device, nbytes: int) -> torch.Tensor:
    """Memory of the host that the device copies to quickly."""
    options: dict[str, Any] = {"dtype": torch.uint8, "device": "cpu"}
    try:
        return torch.empty(nbytes, pin_memory=device.type == "cuda", **options)
    except RuntimeError:  # no more of it can be had
        return torch.empty(nbytes, **options)


def synchronize(kind: str) -> None:
    """Wait for the devices of a type."""
    wait = getattr(getattr(torch, kind, None), "synchronize", None)
    if wait is not None:
        wait()
