"""Tensors without contents, for models that no memory holds; small ones that depend on none of them are real.

PyTorch's own FakeTensorMode makes all tensors fake. Models that ask for a number while they are built (the rates of
stochastic depth are a `linspace`), and optimizers that count their steps in a tensor, can't be run with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.optim import optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from torchferry.ops.capture.mode import CapturingMode

NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException)
_BATCH_NORM = torch.ops.aten.native_batch_norm.default
_MOST_REAL_ELEMENTS = 4096  # of a tensor; a model of 100,000 such would take 2 GB


@contextmanager
def taken_for_real() -> Iterator[None]:
    """Optimizers work on lists of tensors only where they know the type of every tensor; and nobody reads the memory
    of fakes when they are copied, though PyTorch warns of it."""
    known: list[type] = getattr(optimizer, "_foreach_supported_types", [])
    known.append(FakeTensor)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
            yield
    finally:
        known.remove(FakeTensor)


class MostlyFakeMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Whatever is large, or made of what is fake, is fake."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        if any(isinstance(tensor, FakeTensor) for tensor in given):
            return self._in_fake(func, args, kwargs)
        if not given or any(tensor.numel() > _MOST_REAL_ELEMENTS for tensor in given):
            try:
                result = self._in_fake(func, args, kwargs)
            except NEEDS_VALUES:  # which are there
                return func(*args, **kwargs)
            if _is_large(result):
                return result
        return func(*args, **kwargs)

    def _in_fake(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._fake:
            result = func(*args, **kwargs)
            return _with_wide_statistics(result, args[1]) if func is _BATCH_NORM else result

    def fake(self, value: Any) -> Any:
        """The same without its contents."""
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            return self._fake.from_tensor(value)
        if isinstance(value, dict):
            return {name: self.fake(each) for name, each in value.items()}
        return [self.fake(each) for each in value] if isinstance(value, list) else value

    def empty(self, model: torch.nn.Module) -> None:
        """Take the contents of a model's parameters and buffers away; those that it shares stay shared."""
        for module in model.modules():
            for held in (module._parameters, module._buffers):
                for name, tensor in list(held.items()):
                    if tensor is not None and not torch.nn.parameter.is_lazy(tensor):
                        setattr(module, name, self.fake(tensor))  # recurrent layers keep lists of theirs


class FakeCapturingMode(CapturingMode):  # type: ignore[no-untyped-call]
    """Captures what is computed with fakes."""

    counts_fakes = True

    def _make(self, func: Any, formula: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Formulas lose what makes a tensor a fake where they make a view by themselves, not by an operator, and
        where they copy a fake into memory that is small, and so real."""
        result = super()._make(func, formula, args, kwargs)
        if formula is None or all(isinstance(tensor, FakeTensor) for tensor in _tensors(result)):
            return result
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            return result  # a recurrent layer: autograd knows it by its parts, which have been made already
        has_fakes = any(isinstance(tensor, FakeTensor) for tensor in _tensors((args, kwargs)))
        return func(*args, **kwargs) if has_fakes else result


def _tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in tree_flatten(value)[0] if isinstance(each, torch.Tensor)]


def _with_wide_statistics(result: Any, weight: torch.Tensor | None) -> Any:
    """PyTorch's formula has mean and deviation in the dtype of the input, its kernels in that of the weights."""
    dtype = result[0].dtype if weight is None else weight.dtype
    return (result[0], *(each.to(dtype) for each in result[1:]))


def _is_large(result: Any) -> bool:
    return any(tensor.numel() > _MOST_REAL_ELEMENTS for tensor in _tensors(result))
