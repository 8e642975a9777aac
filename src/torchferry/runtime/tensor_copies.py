"""torch.cuda.comm for any device: copies, sums and splits of tensors between devices of one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.parallel import comm

from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import LayerTarget

Tensors = Sequence[torch.Tensor]


def _devices(devices: Any) -> list[torch.device]:
    return [torch.device(device) for device in devices]


def broadcast(
    tensor: torch.Tensor, devices: Any = None, *, out: Tensors | None = None
) -> tuple[torch.Tensor, ...]:
    """Copies of a tensor on several devices; the one that is there already is not copied."""
    if out is not None:
        return tuple(place.copy_(tensor) for place in out)
    return tuple(tensor.to(device) for device in _devices(devices))


def broadcast_coalesced(
    tensors: Tensors, devices: Any, buffer_size: int = 0
) -> tuple[tuple[torch.Tensor, ...], ...]:
    """For each device, copies of all tensors."""
    return tuple(tuple(tensor.to(device) for tensor in tensors) for device in _devices(devices))


def reduce_add(inputs: Tensors, destination: Any = None) -> torch.Tensor:
    """The sum of tensors that are on several devices, on one of them."""
    first = inputs[0]
    total = first.clone() if destination is None else first.to(torch.device(destination), copy=True)
    for tensor in inputs[1:]:
        total += tensor.to(total)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Tensors], destination: Any = None, buffer_size: int = 0
) -> tuple[torch.Tensor, ...]:
    """For each place in the lists, the sum over the devices."""
    return tuple(reduce_add(same, destination) for same in zip(*inputs, strict=True))


def scatter(
    tensor: torch.Tensor,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Tensors | None = None,
) -> tuple[torch.Tensor, ...]:
    """The parts of a tensor, each on a device of its own."""
    if out is not None:
        parts = torch.split(tensor, [place.size(dim) for place in out], dim)
        return tuple(place.copy_(part) for place, part in zip(out, parts, strict=True))
    places = _devices(devices)
    parts = (
        tensor.chunk(len(places), dim) if chunk_sizes is None else torch.split(tensor, list(chunk_sizes), dim)
    )
    return tuple(part.to(place) for part, place in zip(parts, places, strict=False))


def gather(
    tensors: Tensors, dim: int = 0, destination: Any = None, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """The parts that are on several devices as one tensor; destination -1 or "cpu" is the host."""
    place: Any = tensors[0] if out is None else out
    if out is None and destination is not None:
        place = torch.device("cpu") if destination == -1 else torch.device(destination)
    whole = torch.cat([tensor.to(place) for tensor in tensors], dim)
    return whole if out is None else out.copy_(whole)


def changes(target: LayerTarget) -> Iterator[Change]:
    """torch.cuda.comm takes its functions from here when it is imported; DataParallel has them from here as well."""
    for function in (broadcast, broadcast_coalesced, reduce_add, reduce_add_coalesced, scatter, gather):
        name = function.__name__
        yield Patch(f"torch.cuda.comm.{name}", comm, name, function, "copies between any devices")
