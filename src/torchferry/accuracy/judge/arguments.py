"""Makes the arguments of a recorded call: tensors, lists, dtypes, devices, as they were or in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from torchferry.accuracy.model import Call, TensorRef, Value
from torchferry.observe import operators as observed
from torchferry.observe.operators import find_overload
from torchferry.operators.names import without_overload
from torchferry.ops.model import Special

# What the schema of a recorded call's operator says.


@cache
def written_arguments(operator: str) -> frozenset[str]:
    """The names of the arguments that it changes."""
    overload = find_overload(operator)
    return observed.written_to(overload) if overload is not None else frozenset()


@cache
def is_random(operator: str) -> bool:
    """Whether it draws random numbers."""
    overload = find_overload(operator)
    return overload is not None and observed.is_random(overload)


@cache
def is_view(operator: str) -> bool:
    """Whether its result is the memory of an argument."""
    overload = find_overload(operator)
    return overload is not None and observed.is_view(overload)


def leaves_uninitialised(operator: str) -> bool:
    """Whether its results hold whatever was in memory."""
    return observed.leaves_uninitialised(without_overload(operator).partition("::")[2])


@cache
def argument_types(operator: str) -> dict[str, str]:
    """name -> type, as PyTorch writes it: Tensor, number, Optional[float], ScalarType ..."""
    overload = find_overload(operator)
    if overload is None:
        return {}
    return {argument.name: str(argument.real_type) for argument in overload._schema.arguments}


DOUBLES = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.complex32: torch.complex128, torch.complex64: torch.complex128,
}  # fmt: skip
_ONLY_HALF = "half_to_float"  # asks for a result of another dtype: double precision needs no other one
_FOR_DEVICES = ("pin_memory", "non_blocking")
_FLOATING, _WIDE = ("float", "bfloat", "complex"), ("float64", "complex128")


class CannotExecuteError(Exception):
    """The call can't be made here; the message says why."""


@dataclass(frozen=True)
class Setting:
    """Where a call is made, and with how many digits."""

    device: str = "cpu"
    home: str = ""  # the type of the device that the record is of: what was there is on `device` now
    doubled: bool = False
    generator: torch.Generator | None = None


Given = Sequence[torch.Tensor]


def is_floating(tensor: torch.Tensor) -> bool:
    """Complex numbers are."""
    return tensor.is_floating_point() or tensor.is_complex()


def doubled(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision; integers stay as they are."""
    if tensor.dtype in DOUBLES:
        return tensor.to(DOUBLES[tensor.dtype])
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def doubled_inputs(tensors: Given) -> list[torch.Tensor]:
    """All of a call. A number that PyTorch made a tensor of has the digits of what it is combined with."""
    narrow = any(is_floating(tensor) and tensor.dtype in DOUBLES for tensor in tensors)
    return [
        _as_single(tensor).to(torch.float64)
        if narrow and tensor.dtype == torch.float64 and tensor.dim() == 0
        else doubled(tensor)
        for tensor in tensors
    ]


def _as_single(tensor: torch.Tensor) -> torch.Tensor:
    single = tensor.to(torch.float32)
    return tensor if bool(torch.isinf(single)) else single


def make_arguments(call: Call, tensors: Given, setting: Setting) -> dict[str, Any]:
    """name -> value; `tensors` are the call's inputs."""
    types = argument_types(call.operator)
    is_narrow = not _computes_in_double(call)
    made: dict[str, Any] = {}
    for name, value in call.arguments:
        if name in _FOR_DEVICES:
            continue
        made[name] = _made(value, tensors, setting)
        if setting.doubled and is_narrow and "number" in types.get(name, ""):
            made[name] = _rounded(made[name])
    if setting.doubled and is_narrow:
        made |= {name: value for name, value in _default_numbers(call.operator) if name not in made}
    if setting.doubled:
        _widen(call, made)
    return made


@cache
def _default_numbers(operator: str) -> tuple[tuple[str, float], ...]:
    """Fractions that an operator is given where the program gives none, in single precision."""
    overload = find_overload(operator)
    arguments = overload._schema.arguments if overload is not None else ()
    return tuple(
        (each.name, _rounded(each.default_value))
        for each in arguments
        if "number" in str(each.real_type) and isinstance(each.default_value, float)
    )


def _computes_in_double(call: Call) -> bool:
    """A result of double precision says so; where results hold no fractions, what it was computed from."""
    results = [record.dtype for record in call.outputs if record.dtype.startswith(_FLOATING)]
    given = [record for record in call.inputs if record.dtype.startswith(_FLOATING)]
    decisive = [record.dtype for record in given if record.shape] or [record.dtype for record in given]
    return any(dtype in _WIDE for dtype in results or decisive)


def _rounded(value: Any) -> Any:
    """Kernels take numbers in single precision at most."""
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if not isinstance(value, float):
        return value
    single = torch.tensor(value, dtype=torch.float32).item()
    return value if single in (float("inf"), float("-inf")) else single


def _widen(call: Call, made: dict[str, Any]) -> None:
    """Ask for double precision where the call asks for a dtype, or takes the default one."""
    if _ONLY_HALF in made:
        made[_ONLY_HALF] = False
    for name, kind in argument_types(call.operator).items():
        if "ScalarType" not in kind:
            continue
        dtype = made.get(name)
        if isinstance(dtype, torch.dtype):
            made[name] = DOUBLES.get(dtype, torch.float64 if dtype.is_floating_point else dtype)
        elif dtype is None and not call.inputs and name == "dtype" and _is_floating(call):
            made[name] = torch.float64


def _is_floating(call: Call) -> bool:
    return any(record.dtype.startswith(("float", "bfloat")) for record in call.outputs)


def _made(value: Value, tensors: Given, setting: Setting) -> Any:
    if isinstance(value, TensorRef):
        return tensors[value.index]
    if isinstance(value, tuple):
        return [_made(item, tensors, setting) for item in value]
    if isinstance(value, Special):
        return _special(value, setting)
    return value


def _special(value: Special, setting: Setting) -> Any:
    text = value.text.removeprefix("torch.")
    if value.kind in ("dtype", "layout", "memory_format"):
        return getattr(torch, text)
    if value.kind == "device":
        return torch.device(setting.device if text.partition(":")[0] == setting.home else "cpu")
    if value.kind == "complex":
        return complex(text)
    if value.kind.lower() == "generator":
        return setting.generator
    raise CannotExecuteError(f"an argument of the type {value.kind} is not kept in a record")


def invoke(call: Call, arguments: Mapping[str, Any]) -> Any:
    """Call the operator itself."""
    overload = find_overload(call.operator)
    if overload is None:
        raise CannotExecuteError(f"this PyTorch has no operator {call.operator}")
    args, kwargs, in_order = [], {}, True
    for argument in overload._schema.arguments:
        if argument.name not in arguments:
            in_order = False
        elif argument.kwarg_only or not in_order:
            kwargs[argument.name] = arguments[argument.name]
        else:
            args.append(arguments[argument.name])
    return overload(*args, **kwargs)
