"""What a device does not do with a dtype: of the device as a whole, and of one kernel."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry.operators.support import matches, moves_data
from torchferry.ops import reasons
from torchferry.ops.model import Use
from torchferry.text import Text
from torchferry.vendors.model import Limits, Narrowing

_CASTS = ("_to_copy", "to")
_VIEWS_AND_COPIES = (
    "alias*", "as_strided*", "clone", "contiguous", "detach*", "diagonal*", "empty_like*", "expand*", "full_like*",
    "lift*", "new_*", "ones_like*", "permute*", "reshape*", "_reshape_alias", "select.*", "slice.*", "split*",
    "squeeze*", "t", "transpose*", "unbind*", "unfold", "_unsafe_view", "unsqueeze*", "view*", "zeros_like*",
)  # fmt: skip


def dtype_limit(
    use: Use, limits: Limits, allowed: tuple[str, ...], environment: Mapping[str, str]
) -> Text | None:
    """Why the dtypes of a call are a problem; None if they are none. `allowed` are those of the kernel, empty: any."""
    inputs = [spec.dtype for spec in use.signature.inputs]
    if allowed and inputs and inputs[0] not in allowed:
        return reasons.DTYPE_OF_OPERATOR.format(allowed=", ".join(allowed), dtype=inputs[0])
    for dtype in use.signature.dtypes:
        limit = limits.dtypes.get(dtype)
        if limit is None or not limit.applies(environment):
            continue
        if limit.narrowing is Narrowing.REFUSED:
            return reasons.DTYPE_REFUSED.format(dtype=dtype)
        if limit.narrowing is Narrowing.COMPUTED_AS and not _only_moves(use):
            return reasons.DTYPE_NARROWER.format(dtype=dtype, becomes=limit.becomes)
        if limit.narrowing is Narrowing.CAST_AS and _casts_to(use, dtype):
            return reasons.DTYPE_CAST.format(dtype=dtype, becomes=limit.becomes)
    return None


def _name(use: Use) -> str:
    return use.operator.partition("::")[2]


def _only_moves(use: Use) -> bool:
    """Whether the call computes nothing with the values: they stay as they are."""
    name = _name(use)
    if name.partition(".")[0] in _CASTS:
        return True
    made = not use.signature.inputs  # by a factory: empty, zeros
    return made or moves_data(name) or matches(name, _VIEWS_AND_COPIES)


def _casts_to(use: Use, dtype: str) -> bool:
    is_cast = _name(use).partition(".")[0] in _CASTS
    before = [spec.dtype for spec in use.signature.inputs]
    return is_cast and dtype in [spec.dtype for spec in use.signature.outputs] and dtype not in before
