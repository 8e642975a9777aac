"""Kernels that are right, and differ: another order of summation, other digits on the way, other approximations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch

from .kernels import Kernel, Kernels, Made

_PRODUCTS = ("mm", "bmm", "addmm")


def all_of(operators: tuple[str, ...], kernel: Kernel) -> Callable[[], AbstractContextManager[Any]]:
    """A kernel for every call of several operators."""

    def entered() -> AbstractContextManager[Any]:
        stack = ExitStack()
        for operator in operators:
            stack.enter_context(Kernels(operator, kernel))
        return stack

    return lambda: _Later(entered)


class _Later:
    """A context that is made when it is entered."""

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make

    def __enter__(self) -> Any:
        self._made = self._make()
        return self._made.__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._made.__exit__(*error)


def _product(order: Callable[[int], list[range]]) -> Kernel:
    """Adds up pieces of the inner dimension one after the other, in single precision."""

    def kernel(made: Made) -> torch.Tensor:
        *addend, one, other = made.args[:3] if len(made.args) > 2 else made.args[:2]
        total = torch.zeros(made.result.shape)
        for piece in order(one.shape[-1]):
            places = list(piece)
            total += one[..., places].float() @ other[..., places, :].float()
        if addend:
            total = total * made.kwargs.get("alpha", 1) + addend[0].float() * made.kwargs.get("beta", 1)
        return total.to(made.result.dtype)

    return kernel


def _pieces(size: int, is_reversed: bool = False) -> Callable[[int], list[range]]:
    def order(length: int) -> list[range]:
        found = [range(start, min(start + size, length)) for start in range(0, length, size)]
        return found[::-1] if is_reversed else found

    return order


def _in_double(made: Made) -> torch.Tensor:
    """Added up in double precision, rounded once."""
    return made.again(torch.float64).to(made.result.dtype)


def _tf32(made: Made) -> torch.Tensor:
    """From inputs that are rounded to 10 bits behind the point."""
    rounded = [
        _to_tf32(each) if isinstance(each, torch.Tensor) and each.dim() > 1 else each for each in made.args
    ]
    return made.again(torch.float64, *rounded).to(made.result.dtype)


def _to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype != torch.float32:
        return tensor
    return ((tensor.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _sequential_sum(made: Made) -> torch.Tensor:
    source, dimensions = made.args[0].float(), made.args[1]
    moved = source.movedim(dimensions, list(range(len(dimensions)))).flatten(0, len(dimensions) - 1)
    total = torch.zeros(moved.shape[1:])
    for row in moved.flip(0):
        total += row
    return total.reshape(made.result.shape).to(made.result.dtype)


def _two_units(made: Made) -> torch.Tensor:
    """Up to two units in the last place off, and not symmetrically."""
    exact = made.again(torch.float64)
    if made.result.dtype != torch.float32:
        return exact.to(made.result.dtype)
    generator = torch.Generator().manual_seed(made.result.numel())
    away = torch.rand(exact.shape, generator=generator, dtype=torch.float64) * 2.5 - 1.0
    return (exact * (1 + away * 2.0**-23)).to(made.result.dtype)


def _fused(made: Made) -> torch.Tensor:
    """As with one rounding for several operations."""
    return made.again(torch.float64).to(made.result.dtype)


_FUNCTIONS = (
    "sigmoid_", "tanh_", "tanh", "gelu", "gelu_backward", "silu", "silu_backward", "_softmax", "_log_softmax",
    "tanh_backward", "sigmoid_backward", "native_layer_norm", "_softmax_backward_data",
)  # fmt: skip
_OPTIMIZERS = (
    "_foreach_addcmul_.Scalar", "_foreach_lerp_.Scalar", "_foreach_addcdiv_.ScalarList", "_foreach_add_.List",
    "_foreach_add.List", "_foreach_sqrt", "_foreach_mul_.Tensor",
)  # fmt: skip
_SUMS = (
    *_PRODUCTS, "convolution", "convolution_backward", "native_batch_norm", "native_batch_norm_backward",
    "native_layer_norm", "native_layer_norm_backward", "avg_pool2d", "std.correction", "mean", "mse_loss",
    "nll_loss_forward", "_foreach_norm.Scalar", "linalg_vector_norm", "embedding_dense_backward", "sum.dim_IntList",
    "_scaled_dot_product_flash_attention_for_cpu", "max_pool2d_with_indices_backward",
)  # fmt: skip

CONTROLS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "the same kernels": nullcontext,
    "products added up one by one": all_of(_PRODUCTS, _product(_pieces(1))),
    "products added up backwards": all_of(_PRODUCTS, _product(_pieces(1, True))),
    "products in blocks": all_of(_PRODUCTS, _product(_pieces(8))),
    "products split in two": all_of(_PRODUCTS, _product(_pieces(24, True))),
    "sums in double precision": all_of(_SUMS, _in_double),
    "sums one by one, backwards": all_of(("sum.dim_IntList",), _sequential_sum),
    "functions two units off": all_of(_FUNCTIONS, _two_units),
    "fused optimizers": all_of(_OPTIMIZERS, _fused),
    "products in TF32": all_of((*_PRODUCTS, "convolution", "convolution_backward"), _tf32),
}
QUICK = ("the same kernels", "products added up backwards", "functions two units off", "products in TF32")
