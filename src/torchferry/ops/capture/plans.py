"""How an operator is captured: as it is, or by the operators that it consists of."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

# Their formulas look at the device and choose something of its own: what they do on the CPU says nothing.
_CHOOSE_BY_DEVICE = frozenset({"aten::_convolution", "aten::convolution_backward", "aten::copy_"})
# The first that an operator has is what a device without a kernel of its own computes with.
_COMPOSITE = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


@cache
def composite_key(func: Any) -> torch._C.DispatchKey | None:
    """The dispatch key of the formula that PyTorch computes this operator with on every device; None: it has kernels.

    Views are left whole: all that they need of a device is memory. Operators of other libraries have their own ways.
    """
    name = func.name()
    if func.namespace != "aten" or name in _CHOOSE_BY_DEVICE or _is_view(func):
        return None
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if has_kernel(name, "CPU"):
        return None
    return next((getattr(torch._C.DispatchKey, key) for key in _COMPOSITE if has_kernel(name, key)), None)


def _is_view(func: Any) -> bool:
    returns = [result.alias_info for result in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returns)
