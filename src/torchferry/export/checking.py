"""Runs an ONNX model with onnxruntime on random inputs, and holds its results against PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from torchferry.errors import RunError
from torchferry.export.calls import Called, Signature
from torchferry.export.exporters import first_line
from torchferry.export.model import Check, Verdict
from torchferry.export.verdicts import Referee, Tensors, judged, run
from torchferry.ops.models.failures import told_as
from torchferry.text import Text

_FIRST_SEED = 1
_NOT_TAKEN = Text(
    "not compared with {sizes}: the model itself takes no such size ({error})",
    "未对比 {sizes}：模型本身不支持该尺寸（{error}）",
)


def compare(
    file: Path, called: Called, signature: Signature, batches: Sequence[int], tolerance: float
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


def sizes_in_words(sizes: dict[str, int]) -> str:
    """As batch=4, length=3."""
    return ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())


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
        yield Check(
            sizes,
            ", ".join(names),
            float("inf"),
            0.0,
            Verdict.FAILED,
            problem=f"onnxruntime: {first_line(error)}",
        )
        return
    for number, (name, result, wanted) in enumerate(zip(names, results, expected, strict=True)):
        yield judged(name, number, torch.from_numpy(result), wanted.detach(), sizes, referee, tolerance)
