"""Makes a recorded call again: on a device as it was, or on the CPU in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import torch

from torchferry.accuracy.judge.formulas import formula_of
from torchferry.accuracy.judge.model import CannotExecuteError
from torchferry.accuracy.model import Call, Slices, TensorRecord, TensorRef, Value
from torchferry.observe import operators as observed
from torchferry.observe.operators import find_overload
from torchferry.operators.names import without_overload
from torchferry.readiness.model import Special

Outputs = list[torch.Tensor | None]  # one for each output of the record; None: the call has given none
_OF_NUMBERS = (torch.float64, torch.int64, torch.bool)
_BLANK = ("uninitialised", "overwritten", "empty")
# What these give depends on the digits of their dtype: the next number, the largest number, the bits themselves.
_OF_THE_DTYPE = {
    "aten::nextafter", "aten::nextafter_", "aten::nan_to_num", "aten::nan_to_num_", "aten::view.dtype", "aten::hash_tensor",
}  # fmt: skip
_ACROSS_PROCESSES = ("c10d::", "_c10d_functional::", "c10d_functional::", "_dtensor::")


class TensorSource(Protocol):
    """Where the contents of recorded tensors come from."""

    def tensor(self, tensor: TensorRecord) -> torch.Tensor:
        """On the CPU, with its own shape and strides; may be written to."""
        ...

    def part(self, tensor: TensorRecord, where: Slices, rows: torch.Tensor | None = None) -> torch.Tensor:
        """What lies there, of some rows only; without reading the rest."""
        ...

    def release(self) -> None:
        """Give back the memory of what was read."""
        ...


def read_inputs(source: TensorSource, call: Call) -> list[torch.Tensor]:
    """All inputs of a call; raises `CannotExecuteError` where the record does not have one."""
    return [_read(source, call, record) for record in call.inputs]


def _read(source: TensorSource, call: Call, record: TensorRecord) -> torch.Tensor:
    if record.offset is not None:
        return source.tensor(record)
    is_empty = not record.elements and not record.unread
    is_overwritten = record.unread in _BLANK and record.name.split("/")[1] in written_arguments(call.operator)
    if is_empty or is_overwritten:
        return _blank(record)
    raise CannotExecuteError(
        f"the contents of {record.name} are not in the record: {record.unread or ('kept in part' if record.part else 'not kept')}"
    )


def has_gaps(call: Call) -> bool:
    """Whether contents were not kept. Those of views are not where nobody has read them."""
    return any(record.offset is None and record.elements for record in (*call.inputs, *call.outputs))


def lies_in_inputs(call: Call) -> bool:
    """Whether the outputs are bytes of the inputs in the file, as those of views are."""
    return all(
        any(
            given.offset is not None
            and record.offset is not None
            and given.offset <= record.offset
            and record.offset + record.nbytes <= given.offset + given.nbytes
            for given in call.inputs
        )
        for record in call.outputs
        if record.elements
    )


def blank_inputs(call: Call) -> list[torch.Tensor]:
    """Inputs for calls that do not look at contents."""
    return list(map(_blank, call.inputs))


def _blank(record: TensorRecord) -> torch.Tensor:
    return torch.empty_strided(record.shape, record.stride, dtype=getattr(torch, record.dtype))


def execute(
    call: Call, inputs: Given, device: str, home: str = "", generator: torch.Generator | None = None
) -> Outputs:
    """On a device, as it was recorded on devices of the type `home`; `inputs` are on the host, and are not changed."""
    written = written_arguments(call.operator)
    placed = [
        _placed(
            tensor, device if _moves(tensor, record, home) else "cpu", record.name.split("/")[1] in written
        )
        for tensor, record in zip(inputs, call.inputs, strict=True)
    ]
    arguments = make_arguments(call, placed, Setting(device, home, generator=generator))
    # what only the library of another device has, as cuDNN's batch norm, is computed by what all have
    is_at_home = device.partition(":")[0] == home
    formula = None if is_at_home else formula_of(without_overload(call.operator))
    try:
        returned = invoke(call, arguments)
    except NotImplementedError:  # what else a device says is its own failure
        if formula is None:
            raise
        returned = formula(arguments)
    return collect(call, returned, arguments)


def _placed(tensor: torch.Tensor, device: str, is_written: bool) -> torch.Tensor:
    """Kernels are chosen by strides, too: repeated elements stay repeated."""
    if 0 not in tensor.stride() or not tensor.numel():
        return tensor.to(device, copy=is_written)
    once = tensor.as_strided(
        [1 if not step else size for size, step in zip(tensor.shape, tensor.stride(), strict=True)],
        tensor.stride(),
    )
    return once.to(device, copy=is_written).expand(tensor.shape)


def _moves(tensor: torch.Tensor, record: TensorRecord, home: str) -> bool:
    """Whether it was on the device. Numbers that PyTorch makes tensors of stay on the host everywhere."""
    if record.device.partition(":")[0] != home:
        return False
    return home != "cpu" or bool(tensor.dim()) or tensor.dtype not in _OF_NUMBERS


def execute_doubled(call: Call, inputs: Given, factors: Mapping[str, float] | None = None) -> Outputs:
    """In double precision, on the CPU; `inputs` are in double precision already, and are not changed. Numbers among
    the arguments are multiplied by `factors`."""
    if call.operator in _OF_THE_DTYPE or without_overload(call.operator) in _OF_THE_DTYPE:
        pairs = zip(inputs, call.inputs, strict=True)
        return execute(call, [tensor.to(getattr(torch, record.dtype)) for tensor, record in pairs], "cpu")
    written = written_arguments(call.operator)
    own = [
        tensor.clone() if record.name.split("/")[1] in written else tensor
        for tensor, record in zip(inputs, call.inputs, strict=True)
    ]
    arguments = make_arguments(call, own, Setting(doubled=True))
    for name, factor in (factors or {}).items():
        arguments[name] *= factor
    formula = formula_of(without_overload(call.operator))
    returned = formula(arguments) if formula is not None else invoke(call, arguments)
    return collect(call, returned, arguments)


@cache
def gpu() -> str | None:
    """A GPU of this machine on which products may be computed in double precision."""
    try:
        return "cuda" if torch.cuda.is_available() and torch.cuda.device_count() else None
    except RuntimeError:
        return None


def execute_on_gpu(call: Call, inputs: Given, factors: Mapping[str, float] | None = None) -> Outputs | None:
    """In double precision there, with the results on the host; None where it can't be done: no GPU, too little memory."""
    device = gpu()
    if device is None:
        return None
    try:
        placed = [doubled(tensor.to(device)) for tensor in inputs]
        found = execute_doubled(call, placed, factors)
        return [tensor.to("cpu") if tensor is not None else None for tensor in found]
    except RuntimeError:
        return None


def collect(call: Call, returned: Any, arguments: Mapping[str, Any]) -> Outputs:
    """What a call has given, in the order of the record's outputs."""
    found: Outputs = [None] * len(call.outputs)
    _take(call.results, returned, found)
    for number, record in enumerate(call.outputs):
        if found[number] is None:
            found[number] = _written(record.name, arguments)
    return [tensor.detach() if tensor is not None else None for tensor in found]


def _take(results: Value, returned: Any, found: Outputs) -> None:
    if isinstance(results, TensorRef):
        if isinstance(returned, (tuple, list)) and len(returned) == 1:
            returned = returned[0]
        found[results.index] = returned if isinstance(returned, torch.Tensor) else None
    elif isinstance(results, tuple):
        items: Sequence[Any] = returned if isinstance(returned, (tuple, list)) else (returned,)
        for result, item in zip(results, items, strict=False):
            _take(result, item, found)


def _written(name: str, arguments: Mapping[str, Any]) -> torch.Tensor | None:
    """The argument that is called output/running_mean, or the item of one: output/self/self_2."""
    _, argument, *item = name.split("/")
    value = arguments.get(argument)
    if item and isinstance(value, (tuple, list)):
        value = value[int(item[0].rpartition("_")[2])]
    return value if isinstance(value, torch.Tensor) else None


# What the schema of a recorded call's operator says, and its arguments: tensors, lists, dtypes, devices, as they were or
# in double precision.


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


@dataclass(frozen=True)
class Setting:
    """Where a call is made, and with how many digits."""

    device: str = "cpu"
    home: str = ""  # the type of the device that the record is of: what was there is on `device` now
    doubled: bool = False
    generator: torch.Generator | None = None


Given = Sequence[torch.Tensor]


def is_floating(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds fractions, as complex numbers are, too."""
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
    """name -> value; `tensors` are the call's inputs. Calls that depend on more than their arguments are refused."""
    if call.operator.startswith(_ACROSS_PROCESSES):
        raise CannotExecuteError("it communicates with other processes")
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
        elif dtype is None and not call.inputs and name == "dtype":
            if any(record.dtype.startswith(("float", "bfloat")) for record in call.outputs):
                made[name] = torch.float64


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
