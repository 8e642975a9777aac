"""What an export has made and found out, as it passes from one process to the other. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from torchferry.errors import InputError
from torchferry.readiness.models.request import ModelRequest, checked
from torchferry.text import Text


@dataclass(frozen=True)
class Port:
    """An input or output of the ONNX model."""

    name: str
    dtype: str
    shape: tuple[str, ...]  # numbers, and names for sizes that are free

    @property
    def described(self) -> str:
        return f"[{', '.join(self.shape)}] {self.dtype}"


class OutputVerdict(str, Enum):
    """What a run says about an output."""

    SAME = "same"
    ROUNDING = "rounding"  # too far apart, but both about as near to double precision
    EMPTY = "empty"  # nothing but zeros and NaN: a wrong model could give them as well
    DIFFERENT = "different"
    CHAOTIC = "chaotic"  # rounding, so much of it that a mistake could hide in it
    RANDOM = "random"  # PyTorch gives another result each time
    FAILED = "failed"  # onnxruntime raised an error, or the shape is another one


@dataclass(frozen=True)
class Check:
    """One output of one run on random inputs: onnxruntime against PyTorch."""

    sizes: Mapping[str, int]  # of the free sizes
    output: str
    error: float  # the largest difference
    scale: float  # the largest value of PyTorch's
    verdict: OutputVerdict
    pytorch_off: float | None = None  # the largest difference to double precision, where that was asked for
    onnx_off: float | None = None
    problem: str = ""

    @property
    def is_good(self) -> bool:
        return self.verdict in (OutputVerdict.SAME, OutputVerdict.ROUNDING, OutputVerdict.EMPTY)

    @property
    def relative(self) -> float:
        """The difference as a part of the largest value."""
        return self.error / self.scale if self.scale else self.error


def sizes_in_words(sizes: Mapping[str, int]) -> str:
    """Sizes in words: batch=4, length=3."""
    return ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())


@dataclass(frozen=True)
class Exported:
    """An ONNX model that was made, and what its runs have shown."""

    output: str
    opset: int
    way: str
    bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    checks: tuple[Check, ...]
    operators: Mapping[str, int]
    notes: tuple[Text, ...]

    @property
    def is_good(self) -> bool:
        return all(check.is_good for check in self.checks)


# What is exported, and how: what a user writes on the command line, checked.

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


def checked_request(request: ExportRequest) -> ExportRequest:
    """The same, once all that can be checked without the model is right."""
    if not request.model.inputs:
        raise InputError(
            Text(
                "an export needs the model's inputs; add --input, as in --input 1x3x224x224",
                "导出需要模型的输入；请加 --input，例如 --input 1x3x224x224",
            )
        )
    parse_dynamic(request.dynamic)
    if request.opset < _LEAST_OPSET:
        raise InputError(
            Text(
                f"--opset {request.opset}: PyTorch's exporters start at opset {_LEAST_OPSET}; choose a newer one",
                f"--opset {request.opset}：PyTorch 的导出器最低支持 opset {_LEAST_OPSET}；请选择更新的 opset",
            )
        )
    return replace(request, model=checked(request.model))


def parse_dynamic(texts: Sequence[str]) -> tuple[DynamicAxis, ...]:
    """Free axes that are written as `batch` or `ids:1=length`."""
    axes: list[DynamicAxis] = []
    for text in texts:
        match = _NAMED_AXIS.fullmatch(text)
        if match is not None:
            axes.append(DynamicAxis(match["symbol"], match["input"], int(match["axis"])))
        elif text.isidentifier():
            axes.append(DynamicAxis(text))
        else:
            raise InputError(
                Text(
                    f"--dynamic {text}: write a name, such as `batch` for the first axis of every input, or "
                    "INPUT:AXIS=NAME, such as ids:1=length",
                    f"--dynamic {text}：请写名称（如 `batch`，表示每个输入的第一个轴），或 INPUT:AXIS=NAME（如 "
                    "ids:1=length）",
                )
            )
    return tuple(axes)
