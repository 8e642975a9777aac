"""What is exported, and how: what a user writes on the command line, checked. Imports no torch."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from torchferry.errors import InputError
from torchferry.ops.models.request import ModelRequest, checked

# Of vendors whose converter's opset is unknown: old enough for most tools, and complete for most models.
DEFAULT_OPSET = 13
DEFAULT_TOLERANCE = 1e-4
_LEAST_OPSET = 7
_NAMED_AXIS = re.compile(r"(?P<input>[\w.]+):(?P<axis>\d+)=(?P<symbol>[A-Za-z_]\w*)")


@dataclass(frozen=True)
class DynamicAxis:
    """A size that stays free: of one axis of one input, or of the first axis of all."""

    symbol: str
    input: str = ""  # "": every input
    axis: int = 0


@dataclass(frozen=True)
class ExportRequest:
    """A model, its weights, and the ONNX that is wanted of them."""

    model: ModelRequest
    output: str
    opset: int
    checkpoint: str = ""  # "": the weights that the factory gives it
    only: str = ""
    lenient: bool = False  # names that don't fit are reported, and no reason to stop
    allow_pickle: bool = False
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    batches: tuple[int, ...] = (1, 4)  # that are tried where the first size is free
    simplify: bool = False
    replace: bool = False  # files that are there already
    tolerance: float = DEFAULT_TOLERANCE

    def encode(self) -> str:
        """As text, for another process."""
        return json.dumps(asdict(self), separators=(",", ":"))


def decode(text: str) -> ExportRequest:
    """What `encode` has written."""
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()
    }
    model = given.pop("model")
    return ExportRequest(ModelRequest(**{**model, "inputs": tuple(model["inputs"])}), **given)


def checked_request(request: ExportRequest) -> ExportRequest:
    """The same, once all that can be checked without the model is right."""
    if not request.model.inputs:
        raise InputError("an export needs the model's inputs; add --input, as --input 1x3x224x224")
    parse_dynamic(request.dynamic)
    if request.opset < _LEAST_OPSET:
        raise InputError(f"--opset {request.opset}: the exporters of PyTorch begin with {_LEAST_OPSET}")
    return replace(request, model=checked(request.model))


def parse_dynamic(texts: Sequence[str]) -> tuple[DynamicAxis, ...]:
    """`batch`, or `ids:1=length`."""
    return tuple(map(_axis, texts))


def _axis(text: str) -> DynamicAxis:
    if text.isidentifier():
        return DynamicAxis(text)
    match = _NAMED_AXIS.fullmatch(text)
    if match is None:
        raise InputError(
            f"--dynamic {text}: write a name, as `batch` for the first axis of every input, or INPUT:AXIS=NAME, as ids:1=length"
        )
    return DynamicAxis(match["symbol"], match["input"], int(match["axis"]))
