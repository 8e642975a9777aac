"""Which overload of an operator takes given arguments, and in which order an overload takes named ones."""

from __future__ import annotations

from typing import Any

from torchferry.errors import InputError
from torchferry.ops.cases.model import CaseValue, Contents, Draw, TensorInput
from torchferry.ops.model import Special

# a value's type -> the schema types that take it, and how well: the lower, the better
_FITS: dict[str, dict[str, int]] = {
    "tensor": {"Tensor": 0},
    "bool": {"bool": 0, "number": 2, "int": 3},
    "int": {"int": 0, "SymInt": 0, "number": 1, "float": 2, "complex": 3, "bool": 4},
    "float": {"float": 0, "number": 1, "complex": 2},
    "complex": {"complex": 0, "number": 1},
    "str": {"str": 0},
    "dtype": {"ScalarType": 0},
    "layout": {"Layout": 0},
    "memory_format": {"MemoryFormat": 0},
    "device": {"Device": 0},
    "generator": {"Generator": 0},
}

_OF_TORCHSCRIPT = "hacked_twin"  # doubles of other overloads


def choose_overload(
    name: str, packet: Any, args: tuple[CaseValue, ...], kwargs: tuple[tuple[str, CaseValue], ...]
) -> str:
    """The overload that takes these arguments best; none or several are an error that says which there are."""
    overloads: list[str] = [
        overload for overload in packet.overloads() if not overload.endswith(_OF_TORCHSCRIPT)
    ]
    if len(overloads) == 1:
        return overloads[0]
    given = dict(kwargs)
    costs = {overload: _cost(getattr(packet, overload)._schema, args, given) for overload in overloads}
    fitting = {overload: cost for overload, cost in costs.items() if cost is not None}
    if not fitting:
        raise InputError(f"{name}: no overload takes these arguments; it has {', '.join(overloads)}")
    best = [overload for overload, cost in fitting.items() if cost == min(fitting.values())]
    if "default" in best:
        return "default"
    if len(best) > 1:
        shown = " or ".join(f"{name}.{overload}" for overload in best)
        raise InputError(f"{name}: these arguments fit several overloads; name one: {shown}")
    return best[0]


def arranged(
    schema: Any, values: dict[str, CaseValue]
) -> tuple[tuple[CaseValue, ...], tuple[tuple[str, CaseValue], ...]]:
    """Named values as positional and keyword arguments: by position as long as none is left out."""
    args: list[CaseValue] = []
    left = dict(values)
    for argument in schema.arguments:
        if argument.kwarg_only or argument.name not in left:
            break
        args.append(_as_tensor(left.pop(argument.name), str(argument.real_type)))
    return tuple(args), tuple(left.items())


def _as_tensor(value: CaseValue, kind: str) -> CaseValue:
    """A number in a tensor's place, which PyTorch makes of one where it calls an operator itself."""
    if kind != "Tensor" or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return TensorInput("float32" if isinstance(value, float) else "int64", (), Contents(Draw.FULL, value))


def _cost(schema: Any, args: tuple[CaseValue, ...], kwargs: dict[str, CaseValue]) -> int | None:
    """How badly a schema takes the arguments; None if it does not."""
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]
    if len(args) > len(positional):
        return None
    bound = {argument.name: value for argument, value in zip(positional, args, strict=False)}
    if bound.keys() & kwargs.keys():
        return None
    bound.update(kwargs)
    total = 0
    for argument in schema.arguments:
        if argument.name not in bound:
            if not argument.has_default_value():
                return None
            continue
        cost = _fit(bound.pop(argument.name), str(argument.real_type))
        if cost is None:
            return None
        total += cost
    return None if bound else total


def _fit(value: CaseValue, kind: str) -> int | None:
    if kind.startswith("Optional["):
        return 0 if value is None else _fit(value, kind[9:-1])
    if not kind.startswith("List["):
        return _FITS.get(_sort(value), {}).get(kind)
    inner = kind[5:-1]
    if isinstance(value, tuple):
        costs = [_fit(item, inner) for item in value]
        return None if None in costs else sum(cost for cost in costs if cost is not None)
    is_size = type(value) is int and inner in ("int", "SymInt")  # one number stands for a list of it
    return 3 if is_size else None


def _sort(value: CaseValue) -> str:
    if isinstance(value, TensorInput):
        return "tensor"
    if isinstance(value, Special):
        return value.kind
    return "list" if isinstance(value, tuple) else type(value).__name__
