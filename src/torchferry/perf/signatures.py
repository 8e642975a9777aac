"""What operators were called with, as short texts: `64×3×224×224, 64×3×7×7` and `float32, float32`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from torchferry.traces.names import DTYPES

if TYPE_CHECKING:
    from torchferry.traces.model import TraceSignature

_LONGEST_LIST = 3  # tensors of a list that are written out


def shapes_text(signature: TraceSignature) -> str:
    """The shapes of the tensors, in the order of the arguments."""
    return ", ".join(filter(None, (_shape(dims) for dims in _tensors(signature.dims, signature.types))))


def dtypes_text(signature: TraceSignature) -> str:
    """The types of the tensors; the same type in a row is written once, with its number."""
    named = [DTYPES[each] for each in signature.types if isinstance(each, str) and each in DTYPES]
    runs = ((name, len(list(run))) for name, run in groupby(named))
    return ", ".join(name if count == 1 else f"{name}×{count}" for name, count in runs)


def _tensors(dims: list[Any], types: list[Any]) -> list[Any]:
    """The shapes of tensors, not the empty ones that numbers and missing arguments have."""
    if len(types) != len(dims):
        return [each for each in dims if each]
    return [
        each
        for each, kind in zip(dims, types, strict=True)
        if each or (isinstance(kind, str) and kind in DTYPES)
    ]


def _shape(dims: Any) -> str:
    if not isinstance(dims, list):
        return ""
    if not dims:
        return "()"
    if all(isinstance(each, list) for each in dims):
        shown = ", ".join(_shape(each) for each in dims[:_LONGEST_LIST])
        return f"[{shown}, … {len(dims)}]" if len(dims) > _LONGEST_LIST else f"[{shown}]"
    return "×".join(map(str, dims)) if len(dims) > 1 else f"({dims[0]},)"
