"""How an operator is captured: as it is, or by the operators that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import torch

# Their formulas look at the device and choose something of its own: what they do on the CPU says nothing.
_CHOOSE_BY_DEVICE = frozenset({"aten::_convolution", "aten::convolution_backward", "aten::copy_"})
# These look whether a mode watches, and then go another way than without: their own consists of views and a copy.
_DISTURBED = frozenset({"aten::repeat"})
# The first that an operator has is what a device without a kernel of its own computes with.
_COMPOSITE = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


def _scalar_tensor(value: Any, **options: Any) -> torch.Tensor:
    return torch.empty((), **options).fill_(value)


# What PyTorch does on devices, where it has a short cut for the CPU.
_ON_DEVICES: Mapping[str, Callable[..., Any]] = {"aten::scalar_tensor": _scalar_tensor}


@cache
def formula_of(func: Any) -> Callable[..., Any] | None:
    """The formula that PyTorch computes this operator with on every device; None: it has kernels.

    Views are left whole: all that they need of a device is memory. Operators of other libraries have their own ways.
    """
    name = func.name()
    if name in _ON_DEVICES:
        return _ON_DEVICES[name]
    if func.namespace != "aten" or name in _CHOOSE_BY_DEVICE or name in _DISTURBED or _is_view(func):
        return None
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if has_kernel(name, "CPU"):
        return None
    key = next((getattr(torch._C.DispatchKey, key) for key in _COMPOSITE if has_kernel(name, key)), None)
    return None if key is None else partial(func._op_dk, key)


def _is_view(func: Any) -> bool:
    returns = [result.alias_info for result in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returns)
