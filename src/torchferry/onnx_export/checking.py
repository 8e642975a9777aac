"""Runs an ONNX model with onnxruntime on random inputs, and holds its results against PyTorch's."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from torchferry.errors import RunError
from torchferry.onnx_export.calls import ModelSignature, TensorForward
from torchferry.onnx_export.exporters import first_line
from torchferry.onnx_export.model import Check, OutputVerdict, sizes_in_words
from torchferry.readiness.models.step import told_as
from torchferry.text import Text

# Judges a difference between onnxruntime and PyTorch: the export's mistake, or what single precision
# makes of the model.
#
# Two bars: the tolerance as it is, and the tolerance times the output's scale. Who meets both has
# computed the same. For others the model runs once more, in double precision: if onnxruntime is about
# as near to that as PyTorch is, the difference is rounding, however large; if it is much further off,
# something else is computed.

Tensors = tuple[torch.Tensor, ...]

# Both round differently: right exports of 60 architectures were at most 1.4 times as far off, with the line below.
_ABOUT_AS_NEAR = 8
_ALWAYS_ROUNDED = 1e-6  # of the scale: PyTorch's own error may be 0 by chance
_TOO_MUCH_ROUNDING = 1e-2  # of the scale: where PyTorch itself is that far off, a mistake could hide in it


def run(called: TensorForward, tensors: Tensors) -> Tensors:
    """The outputs that PyTorch computes."""
    with torch.no_grad():
        made: Tensors = called(*tensors)
        return made


@dataclass(frozen=True)
class Referee:
    """Further runs of the model with the same inputs, made when they are needed."""

    called: TensorForward
    tensors: Tensors

    @cached_property
    def exact(self) -> Tensors | None:
        """In double precision; None: the model does not compute in it."""
        try:
            doubled = copy.deepcopy(self.called).double()
            tensors = (tensor.double() if tensor.is_floating_point() else tensor for tensor in self.tensors)
            return run(doubled, tuple(tensors))
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
        problem = f"{name} has the shape {shapes}"
        return Check(sizes, name, float("inf"), 0.0, OutputVerdict.FAILED, problem=problem)
    error, scale = apart(result, wanted), _scale(wanted)
    check = partial(Check, sizes, name, error, scale)
    limit = tolerance * min(1.0, scale) if wanted.is_floating_point() or wanted.is_complex() else 0.0
    if error <= limit:
        # Whether there is a number in it that a wrong model would not give as well.
        says_something = wanted.numel() == 0 or not wanted.is_floating_point() or scale > 0.0
        return check(OutputVerdict.SAME if says_something else OutputVerdict.EMPTY)
    again = referee.again[number]
    if again.shape != wanted.shape or apart(again, wanted):
        return check(OutputVerdict.RANDOM)
    exact = referee.exact[number] if referee.exact is not None else None
    if exact is None or exact.shape != wanted.shape:
        is_near = limit > 0.0 and error <= tolerance * max(1.0, scale)
        return check(OutputVerdict.SAME if is_near else OutputVerdict.DIFFERENT)
    ours, theirs = apart(wanted, exact), apart(result, exact)
    is_as_near = theirs <= _ABOUT_AS_NEAR * max(ours, _ALWAYS_ROUNDED * scale)
    verdict = OutputVerdict.DIFFERENT
    if is_as_near:
        verdict = OutputVerdict.ROUNDING if ours <= _TOO_MUCH_ROUNDING * scale else OutputVerdict.CHAOTIC
    return check(verdict, pytorch_off=ours, onnx_off=theirs)


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


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float64))


_FIRST_SEED = 1
_NOT_TAKEN = Text(
    "not compared for {sizes}: the model itself does not accept this size ({error})",
    "未对比 {sizes}：模型本身不支持该尺寸（{error}）",
)


def compare(
    file: Path, called: TensorForward, signature: ModelSignature, batches: Sequence[int], tolerance: float
) -> tuple[list[Check], list[Text]]:
    """Every output at every combination of sizes that is worth a try; and which the model itself does not take."""
    session = _session(file)
    checks: list[Check] = []
    said: list[Text] = []
    for seed, sizes in enumerate(sizes_to_try(signature, batches), _FIRST_SEED):
        tensors = signature.draw(sizes, seed)
        try:
            with told_as("the forward pass with other random inputs"):
                expected = run(called, tensors)
        except RunError as error:
            if not checks:  # the sizes as given
                raise
            said.append(
                _NOT_TAKEN.format(sizes=sizes_in_words(sizes), error=str(error).split(" failed: ")[-1])
            )
            continue
        checks += _compared(session, signature, Referee(called, tensors), expected, sizes, tolerance)
    return checks, said


def sizes_to_try(signature: ModelSignature, batches: Sequence[int]) -> Iterator[dict[str, int]]:
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


def _session(file: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no class in common
        raise RunError(
            Text(
                f"{file.name}: onnxruntime rejects the model: {first_line(error)}",
                f"{file.name}：onnxruntime 拒绝该模型：{first_line(error)}",
            )
        ) from None


def _compared(
    session: Any,
    signature: ModelSignature,
    referee: Referee,
    expected: Tensors,
    sizes: dict[str, int],
    tolerance: float,
) -> Iterator[Check]:
    names = [output.name for output in session.get_outputs()]
    # An input that changes nothing is not in the graph.
    taken = {entry.name for entry in session.get_inputs()}
    pairs = zip(signature.names, referee.tensors, strict=True)
    try:
        results = session.run(None, {name: tensor.numpy() for name, tensor in pairs if name in taken})
    except Exception as error:  # see above
        problem = f"onnxruntime: {first_line(error)}"
        yield Check(sizes, ", ".join(names), float("inf"), 0.0, OutputVerdict.FAILED, problem=problem)
        return
    for number, (name, result, wanted) in enumerate(zip(names, results, expected, strict=True)):
        yield judged(name, number, torch.from_numpy(result), wanted.detach(), sizes, referee, tolerance)
