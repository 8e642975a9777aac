"""Runs an ONNX model with onnxruntime on random inputs, and holds its results against PyTorch's."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from torchferry.errors import RunError
from torchferry.export.calls import Called, Signature
from torchferry.export.exporters import first_line
from torchferry.export.model import Check

_FIRST_SEED = 1
_ROUNDING = "PyTorch itself is off by {:.2g} from what it computes in double precision"


def compare(
    file: Path, called: Called, signature: Signature, batches: Sequence[int], tolerance: float
) -> list[Check]:
    """Every output at every combination of sizes that is worth a try."""
    session = _session(file)
    checks: list[Check] = []
    for seed, sizes in enumerate(sizes_to_try(signature, batches), _FIRST_SEED):
        tensors = signature.draw(sizes, seed)
        expected = _expected(called, tensors)
        if expected is None:  # the model itself takes no such size
            continue
        found = list(_compared(session, signature, tensors, expected, sizes, tolerance))
        checks += _explained(found, called, tensors, expected)
    return checks


def _explained(
    checks: list[Check], called: Called, tensors: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]
) -> list[Check]:
    """For outputs that differ: how far PyTorch's own single precision is from double, which may be as far."""
    if all(check.is_good or check.problem for check in checks):
        return checks
    exact = _expected(
        copy.deepcopy(called).double(),
        tuple(tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors),
    )
    if exact is None:
        return checks
    return [
        check if check.is_good or check.problem else replace(check, problem=_ROUNDING.format(_apart(a, b)))
        for check, a, b in zip(checks, exact, expected, strict=True)
    ]


def sizes_to_try(signature: Signature, batches: Sequence[int]) -> Iterator[dict[str, int]]:
    """As given; then with other first sizes; then with half of each other free size."""
    given = signature.given_sizes()
    yield given
    firsts = {axes[0] for axes in signature.axes.values() if 0 in axes}
    for size in batches:
        changed = {**given, **dict.fromkeys(firsts, size)}
        if changed != given:
            yield changed
    for symbol in given.keys() - firsts:
        if given[symbol] > 1:
            yield {**given, symbol: given[symbol] // 2}


def _expected(called: Called, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
    try:
        with torch.no_grad():
            made: tuple[torch.Tensor, ...] = called(*tensors)
            return made
    except Exception:  # whatever a user's model raises for a size that it does not take
        return None


def _session(file: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no class in common
        raise RunError(f"{file.name}: onnxruntime does not take it: {first_line(error)}") from None


def _compared(
    session: Any,
    signature: Signature,
    tensors: tuple[torch.Tensor, ...],
    expected: tuple[torch.Tensor, ...],
    sizes: dict[str, int],
    tolerance: float,
) -> Iterator[Check]:
    names = [output.name for output in session.get_outputs()]
    taken = {
        entry.name for entry in session.get_inputs()
    }  # an input that changes nothing is not in the graph
    feed = {
        name: tensor.numpy() for name, tensor in zip(signature.names, tensors, strict=True) if name in taken
    }
    try:
        results = session.run(None, feed)
    except Exception as error:  # see above
        yield Check(sizes, ", ".join(names), float("inf"), 0.0, False, first_line(error))
        return
    for name, result, wanted in zip(names, results, expected, strict=True):
        yield _check(name, torch.from_numpy(result), wanted.detach(), sizes, tolerance)


def _check(
    name: str, result: torch.Tensor, wanted: torch.Tensor, sizes: dict[str, int], tolerance: float
) -> Check:
    if result.shape != wanted.shape:
        shapes = f"{list(result.shape)} instead of {list(wanted.shape)}"
        return Check(sizes, name, float("inf"), 0.0, False, f"it has the shape {shapes}")
    if result.numel() == 0:
        return Check(sizes, name, 0.0, 0.0, True)
    error = _apart(result, wanted)
    scale = float(_widened(wanted).abs().nan_to_num(0.0, 0.0).max())
    limit = tolerance * max(1.0, scale) if wanted.is_floating_point() or wanted.is_complex() else 0.0
    return Check(sizes, name, error, scale, error <= limit)


def _apart(result: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference; equal infinities and NaN in the same place are none."""
    ours, theirs = _widened(result), _widened(wanted)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    apart = (ours - theirs).abs().masked_fill(same, 0.0)
    return float(apart.nan_to_num(float("inf"), float("inf")).max())


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float64))
