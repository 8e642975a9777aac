"""Judges a difference between onnxruntime and PyTorch: the export's mistake, or what single precision makes of the model.

Two bars: the tolerance as it is, and the tolerance times the output's scale. Who meets both has computed the same. For
others the model runs once more, in double precision: if onnxruntime is about as near to that as PyTorch is, the
difference is rounding, however large; if it is much further off, something else is computed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property

import torch

from torchferry.export.calls import Called
from torchferry.export.model import Check, Verdict

Tensors = tuple[torch.Tensor, ...]

# Both round differently: right exports of 60 architectures were at most 1.4 times as far off, with the line below.
_ABOUT_AS_NEAR = 8
_ALWAYS_ROUNDED = 1e-6  # of the scale: PyTorch's own error may be 0 by chance
_TOO_MUCH_ROUNDING = 1e-2  # of the scale: where PyTorch itself is that far off, a mistake could hide in it


def run(called: Called, tensors: Tensors) -> Tensors:
    """PyTorch's outputs."""
    with torch.no_grad():
        made: Tensors = called(*tensors)
        return made


@dataclass(frozen=True)
class Referee:
    """Further runs of the model with the same inputs, made when they are needed."""

    called: Called
    tensors: Tensors

    @cached_property
    def exact(self) -> Tensors | None:
        """In double precision; None: the model does not compute in it."""
        try:
            doubled = copy.deepcopy(self.called).double()
            return run(
                doubled,
                tuple(tensor.double() if tensor.is_floating_point() else tensor for tensor in self.tensors),
            )
        except Exception:  # whatever a user's model raises for another dtype
            return None

    @cached_property
    def again(self) -> Tensors:
        """With another state of the random numbers."""
        torch.manual_seed(torch.initial_seed() + 1)
        return run(self.called, self.tensors)


def judged(
    name: str,
    number: int,
    result: torch.Tensor,
    wanted: torch.Tensor,
    sizes: dict[str, int],
    referee: Referee,
    tolerance: float,
) -> Check:
    """What is to be thought of one output."""
    if result.shape != wanted.shape:
        shapes = f"{list(result.shape)} instead of {list(wanted.shape)}"
        return Check(sizes, name, float("inf"), 0.0, Verdict.FAILED, problem=f"{name} has the shape {shapes}")
    error, scale = apart(result, wanted), _scale(wanted)
    limit = tolerance * min(1.0, scale) if wanted.is_floating_point() or wanted.is_complex() else 0.0
    if error <= limit:
        return Check(sizes, name, error, scale, Verdict.SAME if _says_something(wanted) else Verdict.EMPTY)
    again = referee.again[number]
    if again.shape != wanted.shape or apart(again, wanted):
        return Check(sizes, name, error, scale, Verdict.RANDOM)
    exact = referee.exact[number] if referee.exact is not None else None
    if exact is None or exact.shape != wanted.shape:
        is_near = limit > 0.0 and error <= tolerance * max(1.0, scale)
        return Check(sizes, name, error, scale, Verdict.SAME if is_near else Verdict.DIFFERENT)
    ours, theirs = apart(wanted, exact), apart(result, exact)
    is_as_near = theirs <= _ABOUT_AS_NEAR * max(ours, _ALWAYS_ROUNDED * scale)
    verdict = Verdict.ROUNDING if ours <= _TOO_MUCH_ROUNDING * scale else Verdict.CHAOTIC
    return Check(
        sizes,
        name,
        error,
        scale,
        verdict if is_as_near else Verdict.DIFFERENT,
        pytorch_off=ours,
        onnx_off=theirs,
    )


def apart(result: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference; equal infinities and NaN in the same place are none."""
    if wanted.numel() == 0:
        return 0.0
    ours, theirs = _widened(result), _widened(wanted)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    difference = (ours - theirs).abs().masked_fill(same, 0.0)
    return float(difference.nan_to_num(float("inf"), float("inf")).max())


def _scale(wanted: torch.Tensor) -> float:
    return float(_widened(wanted).abs().nan_to_num(0.0, 0.0).max()) if wanted.numel() else 0.0


def _says_something(wanted: torch.Tensor) -> bool:
    """Whether there is a number in it that a wrong model would not give as well."""
    return wanted.numel() == 0 or not wanted.is_floating_point() or _scale(wanted) > 0.0


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float64))
