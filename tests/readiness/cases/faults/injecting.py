"""Wrong kernels, put in the place of the simulated device's for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

Condition = Callable[..., bool]  # of the operator's arguments, on the CPU


@contextmanager
def fault(
    operator: str, when: Condition, error: str = "", spoil: Callable[[Any], Any] | None = None
) -> Iterator[None]:
    """Let the device compute an operator wrongly, or raise, where a condition holds."""
    name, _, overload = operator.partition(".")
    original = getattr(getattr(torch.ops.aten, name), overload or "default")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        device = next(item for item in _flat([args, kwargs]) if isinstance(item, torch.Tensor)).device
        host_args, host_kwargs = tree_map_only(torch.Tensor, _on_host, (args, kwargs))
        result = original(*host_args, **host_kwargs)
        if when(*host_args, **host_kwargs):
            if error:
                raise RuntimeError(error)
            result = (spoil or _off_by_one)(result)
        return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), result)

    library = torch.library.Library("aten", "IMPL")
    library.impl(operator, kernel, "PrivateUse1", allow_override=True)
    try:
        yield
    finally:
        library._destroy()


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    """With the strides that it has on the device."""
    host = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return host.copy_(tensor.cpu()) if tensor.numel() else host


def _off_by_one(result: Any) -> Any:
    def spoiled(tensor: torch.Tensor) -> torch.Tensor:
        wrong = tensor.clone()
        if wrong.numel() and wrong.dtype != torch.bool:
            wrong[(-1,) * wrong.ndim] += 1
        return wrong

    return tree_map_only(torch.Tensor, spoiled, result)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))
    else:
        yield value
