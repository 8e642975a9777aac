"""Typed tensors and storages of the stand-in: the CPU's, under CUDA's names."""

from __future__ import annotations

from typing import Any

import torch


class _CudaType(type):
    """Of torch.cuda.FloatTensor: a tensor is one if it is on a device."""

    of_host: Any

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.of_host) and bool(value.is_cuda)


def names(told_apart: bool) -> dict[str, Any]:
    """By name. Only where tensors on a device can be told from the host's are CUDA's types others than the CPU's."""
    kinds = [
        name for name in vars(torch.cuda) if name.endswith(("Tensor", "Storage")) and hasattr(torch, name)
    ]
    return {
        name: _tensor_type(name) if told_apart and name.endswith("Tensor") else getattr(torch, name)
        for name in kinds
    }


def _tensor_type(name: str) -> _CudaType:
    of_host = getattr(torch, name)

    def new(cls: type, *args: Any, **settings: Any) -> torch.Tensor:
        made: torch.Tensor = of_host(*args, **settings).cuda()
        return made

    return _CudaType(name, (), {"__new__": new, "__module__": "torch.cuda", "of_host": of_host})


def host_type(kind: Any) -> tuple[Any, bool | None]:
    """A typed tensor, by its class or its name, as the CPU's, and whether it is one of CUDA's; None: no typed tensor."""
    if isinstance(kind, _CudaType):
        return kind.of_host, True
    if isinstance(kind, str) and kind.endswith("Tensor"):
        return kind.replace("torch.cuda.", "torch.", 1), kind.startswith("torch.cuda.")
    return kind, False if isinstance(kind, type) else None
