"""What the names in a trace stand for: operators, steps of autograd, marks of optimizers and loaders, frames."""

from __future__ import annotations

import re
import sys

from torchferry.operators.schemas import schemas

_OPERATOR = re.compile(r"(\w+)::([A-Za-z_][\w.]*)$")
_NOT_OPERATORS = ("autograd", "torch", "c10", "at")
_EVALUATED = "autograd::engine::evaluate_function: "
_BACKWARD_STEP = re.compile(r"(?:torch::autograd::)?(\w*Backward\d*|AccumulateGrad|CopySlices|GraphRoot)$")
_STEP = "Optimizer.step#"
_PROFILER_STEP = "ProfilerStep"
_COMPILED = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction", "triton_")
_SCRIPTED = ("torch::jit::", "TorchScript", "<forward op>")
# What C++ calls a dtype.
DTYPES = {
    "float": "float32", "double": "float64", "long int": "int64", "long": "int64", "long long": "int64",
    "int": "int32", "short int": "int16", "short": "int16", "signed char": "int8", "unsigned char": "uint8",
    "bool": "bool", "unsigned short": "uint16", "short unsigned int": "uint16", "unsigned int": "uint32",
    "unsigned long": "uint64", "long unsigned int": "uint64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128", "c10::complex<c10::Half>": "complex32",
    "c10::Float8_e4m3fn": "float8_e4m3fn", "c10::Float8_e5m2": "float8_e5m2", "c10::quint8": "quint8",
    "c10::qint8": "qint8", "c10::qint32": "qint32",
}  # fmt: skip
_MODULE = re.compile(r"nn\.Module: (\w+)$")
_FRAME = re.compile(r"(.+)\((\d+)\): ")
_LIBRARIES = ("torch/", "torchferry/", "<")
_INSTALLED = re.compile(r"(?:site|dist)-packages/(.*)")
_STANDARD = re.compile(r".*/lib/python3\.\d+/(.*)")


def operator_of(name: str, of_old_profiler: bool = False) -> str:
    """aten::add of an event's name; "" if it is no operator. The oldest profilers left `aten::` out."""
    found = _OPERATOR.match(name)
    if found:
        return "" if found[1] in _NOT_OPERATORS else name
    return f"aten::{name}" if of_old_profiler and name in schemas() else ""


def backward_step_of(name: str) -> str:
    """ConvolutionBackward0, of an event's name; "" if it is no step of the backward pass."""
    found = _BACKWARD_STEP.match(name.removeprefix(_EVALUATED))
    if found:
        return found[1]
    return name.removeprefix(_EVALUATED).split("::")[-1] if name.startswith(_EVALUATED) else ""


def is_optimizer_step(name: str) -> bool:
    """Whether this is the mark of an optimizer's step."""
    return name.startswith(_STEP)


def is_profiler_step(name: str) -> bool:
    """Whether this is the mark of one turn of the program's loop."""
    return name.startswith(_PROFILER_STEP)


def note_of(name: str) -> str:
    """The key of a note that the mere existence of an event calls for; "" if there is none."""
    if name.startswith(_COMPILED):
        return "compiled"
    return "scripted" if name.startswith(_SCRIPTED) else ""


def module_of(name: str) -> str:
    """Conv2d_0, of a Python event; "" if it is no module's call."""
    found = _MODULE.match(name)
    return found[1] if found else ""


def place_of(frame: str) -> str:
    """model.py:12, of a frame such as `model.py(12): forward`; "" if it is PyTorch's or Python's own."""
    found = _FRAME.match(frame)
    if found is None:
        return ""
    file = found[1].replace("\\", "/")
    installed = _INSTALLED.search(file)
    standard = None if installed else _STANDARD.match(file)
    seen_by_python = installed[1] if installed else standard[1] if standard else file
    top = seen_by_python.split("/")[0].removesuffix(".py")
    if seen_by_python.startswith(_LIBRARIES) or (not installed and top in sys.stdlib_module_names):
        return ""
    return f"{found[1]}:{found[2]}"


def place_in_stack(stack: str) -> str:
    """The innermost line of a stack that is not PyTorch's."""
    places = (place_of(frame.strip()) for frame in stack.split(";"))
    return next((place for place in places if place), "")
