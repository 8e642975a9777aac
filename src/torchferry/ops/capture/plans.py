"""How an operator is captured: as it is, or by the operators that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import torch

from torchferry.operators.equivalents import CHOOSE_BY_DEVICE

# These look whether a mode watches, and then go another way than without: their own consists of views and a copy.
_DISTURBED = frozenset({"aten::repeat"})
# The first that an operator has is what a device without a kernel of its own computes with.
_COMPOSITE = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


_set_excluded: Any = torch._C._SetExcludeDispatchKeyGuard
_NUMBERS = (int, float, complex)


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
    if func.namespace != "aten" or name in CHOOSE_BY_DEVICE or name in _DISTURBED or _is_view(func):
        return None
    if not torch._C._dispatch_has_kernel(
        name
    ):  # not the dispatcher's: how it asks subclasses for their sizes
        return None
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if has_kernel(name, "CPU"):
        return None
    key = next((getattr(torch._C.DispatchKey, key) for key in _COMPOSITE if has_kernel(name, key)), None)
    return None if key is None else partial(func._op_dk, key)


def _is_view(func: Any) -> bool:
    returns = [result.alias_info for result in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returns)


@contextmanager
def conjugates_resolved() -> Iterator[None]:
    """What a mode calls gets tensors that are only marked as conjugate or negative as they are: most operators would
    not see the mark. Those that a formula calls have to get them as anywhere else."""
    keys = torch._C.DispatchKey
    with _set_excluded(keys.Conjugate, False), _set_excluded(keys.Negative, False):
        yield


def with_tensors(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A formula hands numbers on as tensors that a mode gets as numbers again, and most operators refuse those."""
    numbers = [
        place for place in _only_tensors(func) if place < len(args) and isinstance(args[place], _NUMBERS)
    ]
    tensor = next((each for each in args if isinstance(each, torch.Tensor)), None)
    if not numbers or tensor is None:
        return args
    changed = list(args)
    for place in numbers:
        changed[place] = torch.tensor(args[place], dtype=torch.result_type(tensor, args[place]))
    return tuple(changed)


@cache
def _only_tensors(func: Any) -> tuple[int, ...]:
    """The positions of arguments that can't be numbers."""
    if torch._C._should_allow_numbers_as_tensors(func._schema.name.partition("::")[2]):
        return ()
    kinds = [str(argument.type) for argument in func._schema.arguments]
    return tuple(place for place, kind in enumerate(kinds) if kind == "Tensor")
