"""Whether a product was computed from inputs with fewer digits, as TF32 and HF32 do: that is a choice, no fault."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torchferry.accuracy.replay.arguments import is_floating
from torchferry.accuracy.replay.errors import Compared, flat
from torchferry.accuracy.replay.margins import reduced
from torchferry.accuracy.replay.sensitivity import Execute

_FEW = 64  # errors: 1 / sqrt(64) is the scatter of a correlation by chance
_REMAINS = 0.1  # of errors that are explained
_EVEN = 0.58  # of the largest error, root mean square
_LARGEST = 3.0  # of what inputs do that are off by half a unit: a part may be larger than the sum


def is_small_enough(compared: Compared, moved: torch.Tensor) -> bool:
    """Whether the errors have the size of those that inputs with fewer digits make."""
    settings = reduced()
    scale = float(moved.norm()) * 2.0 ** (24 - settings.digits)
    error = float((compared.mine - compared.right).norm())
    return not compared.errors.nonfinite and error <= settings.rms * scale + float(compared.limit.norm())


def is_split(compared: Compared, moved: torch.Tensor, dtype_digits: int) -> bool:
    """Whether a product in half precision errs as if it were the sum of a few rounded parts: without a bias."""
    if compared.errors.nonfinite or compared.errors.bias > 1.0:
        return False
    scale = moved.reshape(-1) * 2.0 ** (24 - dtype_digits)
    error = (compared.mine - compared.right).abs()
    allowed = reduced().half_rms * float(scale.norm()) + _EVEN * float(compared.limit.norm())
    return float(error.norm()) <= allowed and bool((error <= _LARGEST * scale + compared.limit).all())


def is_alike(compared: Compared, inputs: Sequence[torch.Tensor], execute: Execute, output: int) -> bool:
    """Whether the errors are at the places of those that inputs with fewer digits make."""
    error = compared.mine - compared.right
    others = _errors_of_fewer_digits(compared, inputs, execute, output)
    if error.numel() < _FEW:  # by chance, few errors are alike: they must be the same
        left, limit = _REMAINS * float(error.norm()), float(compared.limit.norm())
        return any(float((error - other).norm()) <= left + limit for other in others)
    return any(_correlation(error, other) >= reduced().correlation for other in others)


def _errors_of_fewer_digits(
    compared: Compared,
    inputs: Sequence[torch.Tensor],
    execute: Execute,
    output: int,
) -> list[torch.Tensor]:
    found = []
    for digits in (reduced().digits, reduced().digits + 1):
        for to_nearest in (True, False):
            narrowed = [_narrowed(each, digits, to_nearest) if is_floating(each) else each for each in inputs]
            result = execute(narrowed, {})[output]
            if result is not None:
                found.append(flat(result) - compared.right)
    return found


def _narrowed(tensor: torch.Tensor, digits: int, to_nearest: bool) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_complex(_narrowed(torch.view_as_real(tensor), digits, to_nearest))
    mantissa, exponent = torch.frexp(tensor)
    scaled = mantissa * 2.0**digits
    return torch.ldexp(scaled.round() if to_nearest else scaled.trunc(), exponent - digits)


def _correlation(one: torch.Tensor, other: torch.Tensor) -> float:
    size = float(one.norm()) * float(other.norm())
    return float(one @ other) / size if size else 0.0
