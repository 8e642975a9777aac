"""The CPU with the half-precision kernels that it lacks: what an operator gives in float32, rounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .checks import Operator

WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}


def is_half(dtype: torch.dtype) -> bool:
    """May the reference for this dtype be computed in a wider one?"""
    return dtype in WIDER


def lacks_kernel(message: str) -> bool:
    """Does an error of the CPU say that there is no kernel for the dtype?"""
    return "not implemented for" in message


class Upcasting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is on, an operator that the CPU lacks in a half precision is computed in float32 and rounded.

    Only that operator: those before and after it keep their own kernels, as on a device that upcasts.
    """

    def __init__(self, half: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.half = half

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Try as it is, then wider."""
        try:
            return func(*args, **(kwargs or {}))
        except RuntimeError as error:
            if not lacks_kernel(str(error)):
                raise
        return self._wider(func, args, kwargs or {})

    def _wider(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        wide_leaves = [_widened(leaf) for leaf in leaves]
        wide_args, wide_kwargs = pytree.tree_unflatten(wide_leaves, spec)
        result = func(*wide_args, **wide_kwargs)
        given = {id(wide): leaf for wide, leaf in zip(wide_leaves, leaves, strict=True)}
        for wide in _written(func, wide_args, wide_kwargs):
            if given[id(wide)] is not wide:
                given[id(wide)].resize_(wide.shape).copy_(wide)
        was_wide = any(isinstance(leaf, torch.Tensor) and leaf.dtype is torch.float32 for leaf in leaves)
        narrow = {} if was_wide else _narrower(self.half)
        return pytree.tree_map(lambda leaf: given.get(id(leaf), _narrowed(leaf, narrow)), result)


def in_float32(operator: Operator, half: torch.dtype) -> Operator:
    """The operator as a whole in float32, rounded: for one that refuses a half precision before it comes to a kernel."""
    narrow = _narrower(half)

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        wide_args, wide_kwargs, wide_out = pytree.tree_map(_widened, (args, kwargs, out))
        if out is None:
            result = operator.call(*wide_args, **wide_kwargs)
            return pytree.tree_map(lambda leaf: _narrowed(leaf, narrow), result)
        operator.call(*wide_args, **wide_kwargs, out=wide_out)
        return pytree.tree_map(_write, out, wide_out)

    def in_place(changed: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return changed.copy_(call(changed, *args, **kwargs))

    return replace(operator, call=call, in_place=in_place)


def _write(out: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    return (out if out.shape == result.shape else out.resize_(result.shape)).copy_(result)


def _narrower(half: torch.dtype) -> dict[torch.dtype, torch.dtype]:
    return {torch.float32: half} | ({torch.complex64: torch.complex32} if half is torch.float16 else {})


def _widened(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.to(WIDER.get(leaf.dtype, leaf.dtype))
    return WIDER.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf


def _narrowed(leaf: Any, narrow: dict[torch.dtype, torch.dtype]) -> Any:
    return leaf.to(narrow.get(leaf.dtype, leaf.dtype)) if isinstance(leaf, torch.Tensor) else leaf


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that an operator writes to."""
    named = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    written = [
        named.get(argument.name)
        for argument in func._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return [leaf for leaf in pytree.tree_leaves(written) if isinstance(leaf, torch.Tensor)]
