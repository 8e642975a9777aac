"""PyTorch's own table of operators with samples (OpInfo), and which of them are examined in which dtype."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice
from typing import Any

import torch

from .checks import Operator, Sample
from .reasons import HOST_ARGUMENTS, SKIPS, UNDEFINED_VALUES
from .upcasting import is_half

DTYPES = ("float32", "float16", "bfloat16", "int64", "bool", "complex64")
_SEED = 4321


@cache
def _database() -> dict[str, Any]:
    try:
        methods = importlib.import_module("torch.testing._internal.common_methods_invocations")
    except ModuleNotFoundError as error:
        sys.exit(f"PyTorch's samples need the package {error.name}: pip install {error.name}")
    return {info.full_name: info for info in methods.op_db}


def operator_names(pattern: str = "*") -> list[str]:
    """The operators whose names match a pattern of the shell's kind, several patterns divided by commas."""
    patterns = pattern.split(",")
    return [name for name in _database() if any(fnmatchcase(name, part) for part in patterns)]


def supports(name: str, dtype: torch.dtype) -> bool:
    """Is the operator examined in this dtype? In a half precision, if the CPU or CUDA has it; else if the CPU has it.

    Accelerators have their half precisions where CUDA has them, and there the device must compute, by upcasting if
    the CPU can't.
    """
    info = _database()[name]
    dtypes = info.supported_dtypes("cpu")
    if is_half(dtype):
        dtypes = dtypes | info.supported_dtypes("cuda")
    return dtype in dtypes


def is_elsewhere(name: str) -> bool:
    """Does the operator compute in none of the dtypes that are examined?"""
    return not any(supports(name, getattr(torch, dtype)) for dtype in DTYPES)


def skip_reason(name: str) -> str:
    """The key in reasons.REASONS of why an operator is not examined at all, or nothing."""
    if name in SKIPS:
        return SKIPS[name]
    if is_elsewhere(name):
        return "other-dtypes"
    return "" if _database()[name].supported_dtypes("cpu") else "no-cpu-kernel"


def cpu_promises(name: str, dtype: torch.dtype) -> bool:
    """Does PyTorch's table say that the CPU has the operator in this dtype?"""
    return dtype in _database()[name].supported_dtypes("cpu")


def operator(name: str, dtype: torch.dtype) -> Operator:
    """How to call it."""
    info = _database()[name]
    is_differentiable = _is_differentiable(info, dtype)
    return Operator(
        name=name,
        call=info,
        in_place=info.inplace_variant,
        takes_out=info.supports_out,
        is_differentiable=is_differentiable,
        is_differentiable_in_place=is_differentiable and info.supports_inplace_autograd,
        has_values=name not in UNDEFINED_VALUES,
    )


def _is_differentiable(info: Any, dtype: torch.dtype) -> bool:
    dtypes = info.supported_backward_dtypes("cpu")
    if is_half(dtype):
        dtypes = dtypes | info.supported_backward_dtypes("cuda")
    return dtype in dtypes


def samples(name: str, dtype: torch.dtype, limit: int) -> Iterator[Sample]:
    """The first samples of an operator, on the CPU; the same ones in every run."""
    info = _database()[name]
    with_grad = _is_differentiable(info, dtype)
    _seed()
    for made in islice(info.sample_inputs("cpu", dtype, requires_grad=with_grad), limit):
        yield Sample(
            made.input,
            tuple(made.args),
            dict(made.kwargs),
            made.broadcasts_input,
            made.output_process_fn_grad,
            HOST_ARGUMENTS.get(name, frozenset()),
        )


def _seed() -> None:
    """The samples draw from three sources of random numbers."""
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    importlib.import_module("numpy").random.seed(_SEED)
