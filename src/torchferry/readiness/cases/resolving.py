"""Finds what a user names: an operator of aten or of a library, a function, a method, a module's class."""

from __future__ import annotations

import difflib
import importlib
import inspect
import keyword
import os
import re
import site
import sys
from pathlib import Path
from typing import Any

import torch

from torchferry.errors import InputError
from torchferry.readiness.cases.model import Callee, CalleeKind, CaseValue, Draw, TensorContents, TensorInput
from torchferry.readiness.model import Special
from torchferry.text import Text, did_you_mean, then

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
    overloads: list[str] = [each for each in packet.overloads() if not each.endswith(_OF_TORCHSCRIPT)]
    if len(overloads) == 1:
        return overloads[0]
    given = dict(kwargs)
    costs = {overload: _cost(getattr(packet, overload)._schema, args, given) for overload in overloads}
    fitting = {overload: cost for overload, cost in costs.items() if cost is not None}
    if not fitting:
        raise InputError(
            Text(
                f"{name}: no overload accepts these arguments; the overloads are {', '.join(overloads)}",
                f"{name}：没有重载接受这些参数；现有重载为 {', '.join(overloads)}",
            )
        )
    best = [overload for overload, cost in fitting.items() if cost == min(fitting.values())]
    if "default" in best:
        return "default"
    if len(best) > 1:
        shown = " or ".join(f"{name}.{overload}" for overload in best)
        raise InputError(
            Text(
                f"{name}: these arguments match several overloads; name one of {shown}",
                f"{name}：这些参数与多个重载相符；请指定其中一个：{shown}",
            )
        )
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
        value = left.pop(argument.name)
        takes_tensor = str(argument.real_type) == "Tensor"
        if takes_tensor and isinstance(value, (int, float)) and not isinstance(value, bool):
            # a number in a tensor's place, which PyTorch makes of one where it calls an operator itself
            dtype = "float32" if isinstance(value, float) else "int64"
            value = TensorInput(dtype, (), TensorContents(Draw.FULL, value))
        args.append(value)
    return tuple(args), tuple(left.items())


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


_SHORT_FORMS = {
    "Tensor.": "torch.Tensor.",
    "nn.": "torch.nn.",
    "F.": "torch.nn.functional.",
    "functional.": "torch.nn.functional.",
}
_OPERATOR = re.compile(r"(?:torch\.ops\.)?(?:(\w+)(?:::|\.))?(\w+)(?:\.(\w+))?")


def resolve(
    name: str,
    args: tuple[CaseValue, ...],
    kwargs: tuple[tuple[str, CaseValue], ...],
    modules: tuple[str, ...] = (),
) -> Callee:
    """What is called with these arguments; `modules` are imported where the name is not known without them."""
    found = _find(name, args, kwargs)
    if found is None and modules:
        for module in modules:
            _import(module, name)
        found = _find(name, args, kwargs)
    if found is None:
        raise InputError(
            then(
                Text(f"{name}: no such operator, function or module", f"{name}：没有该算子、函数或模块"),
                _near(name),
            )
        )
    return found


def _find(name: str, args: tuple[CaseValue, ...], kwargs: tuple[tuple[str, CaseValue], ...]) -> Callee | None:
    if re.fullmatch(r"[^:]+:\w[\w.]*", name):
        return _users_own(name)
    long = next(
        (full + name.removeprefix(short) for short, full in _SHORT_FORMS.items() if name.startswith(short)),
        name,
    )
    if long.startswith("torch.") and not long.startswith("torch.ops."):
        return _of_torch(name, long)
    return _operator(name, args, kwargs)


def _operator(
    name: str, args: tuple[CaseValue, ...], kwargs: tuple[tuple[str, CaseValue], ...]
) -> Callee | None:
    match = _OPERATOR.fullmatch(name)
    if match is None:
        return None
    namespace, base, overload = match[1] or "aten", match[2], match[3] or ""
    packet = getattr(getattr(torch.ops, namespace), base, None)
    if packet is None and not match[3] and match[1]:  # max.dim
        namespace, base, overload = "aten", match[1], match[2]
        packet = getattr(torch.ops.aten, base, None)
    if packet is None:
        return None
    if overload and overload not in packet.overloads():
        known = ", ".join(packet.overloads())
        raise InputError(
            Text(
                f"{name}: {namespace}::{base} has no overload `{overload}`; choose one of {known}",
                f"{name}：{namespace}::{base} 没有重载 `{overload}`；请从 {known} 中选择",
            )
        )
    overload = overload or choose_overload(f"{namespace}::{base}", packet, args, kwargs)
    chosen = getattr(packet, overload)
    shown = f"{namespace}::{base}" + ("" if overload == "default" else f".{overload}")
    python = f"torch.ops.{namespace}.{base}"
    python = f'getattr({python}, "{overload}")' if keyword.iskeyword(overload) else f"{python}.{overload}"
    return Callee(CalleeKind.OPERATOR, shown, python, in_place=bool(chosen._schema.is_mutable))


def _of_torch(name: str, long: str) -> Callee | None:
    thing: Any = torch
    for part in long.split(".")[1:]:
        thing = getattr(thing, part, None)
    if isinstance(thing, type) and issubclass(thing, torch.nn.Module):
        return Callee(CalleeKind.MODULE, name, long)
    if not callable(thing) or isinstance(thing, type):
        return None
    last = long.rpartition(".")[2]
    return Callee(CalleeKind.FUNCTION, name, long, in_place=last.endswith("_") and not last.endswith("__"))


def _users_own(name: str) -> Callee | None:
    """package.module:Class or path/to/file.py:Class; what is in no installed package gets its folder onto the path."""
    module_name, _, attribute = name.partition(":")
    here = os.getcwd()
    if module_name.endswith(".py"):
        path = Path(module_name).resolve()
        if not path.is_file():
            raise InputError(
                Text(f"{name}: no such file: {module_name}", f"{name}：没有该文件：{module_name}")
            )
        if not path.stem.isidentifier():
            raise InputError(
                Text(
                    f"{name}: {path.name} can't be imported: `{path.stem}` is not a valid module name",
                    f"{name}：无法导入 {path.name}：`{path.stem}` 不是合法的模块名",
                )
            )
        here, module_name = str(path.parent), path.stem
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name, name)
    thing = module
    for part in attribute.split("."):
        thing = getattr(thing, part, None)
    if not callable(thing):
        near = difflib.get_close_matches(attribute, dir(module), 3)
        absent = Text(
            f"{name}: {module_name} has no class or function `{attribute}`",
            f"{name}：{module_name} 中没有类或函数 `{attribute}`",
        )
        raise InputError(then(absent, did_you_mean(near)))
    is_module = isinstance(thing, type) and issubclass(thing, torch.nn.Module)
    if isinstance(thing, type) and not is_module:
        raise InputError(
            Text(f"{name}: a class, but not a torch.nn.Module", f"{name}：是类，但不是 torch.nn.Module")
        )
    kind = CalleeKind.MODULE if is_module else CalleeKind.FUNCTION
    line = f"from {module_name} import {attribute.split('.')[0]}"
    return Callee(kind, name, attribute, (line,), _folder(module, module_name))


def _folder(module: Any, name: str) -> str:
    """The folder that must be on Python's path for a module; "" if it is installed."""
    try:
        file = Path(inspect.getfile(module)).resolve()
    except TypeError:
        return ""
    installed = [*site.getsitepackages(), sys.prefix, sys.base_prefix]
    if any(file.is_relative_to(Path(place).resolve()) for place in installed):
        return ""
    levels = name.count(".") + (1 if file.name == "__init__.py" else 0)
    return str(file.parents[levels])


def _import(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as error:  # a user's module may raise anything
        raise InputError(
            Text(
                f"{name}: {module} can't be imported: {type(error).__name__}: {error}",
                f"{name}：无法导入 {module}：{type(error).__name__}: {error}",
            )
        ) from None


def _near(name: str) -> Text:
    if name.startswith(("torch.", *_SHORT_FORMS)) and not name.startswith("torch.ops."):
        spaces = {
            "torch": torch,
            "torch.nn": torch.nn,
            "torch.nn.functional": torch.nn.functional,
            "nn": torch.nn,
            "F": torch.nn.functional,
            "Tensor": torch.Tensor,
        }
        known = {f"{path}.{each}" for path, space in spaces.items() for each in dir(space)}
        public = sorted(each for each in known if not each.rpartition(".")[2].startswith("__"))
        matches = difflib.get_close_matches(name, public, 3, 0.7)
    else:
        operators = {full.partition(".")[0] for full in torch._C._dispatch_get_all_op_names()}
        by_library = sorted(operators, key=lambda each: each.startswith("aten"))
        bare = {each.partition("::")[2]: each for each in by_library}
        word = re.split(r"::|\.", name.removeprefix("torch.ops.").removeprefix("aten."))
        wanted = word[1] if "::" in name and len(word) > 1 else word[0]
        matches = [bare[each] for each in difflib.get_close_matches(wanted, sorted(bare), 3, 0.6)]
    others = [each for each in matches if each != name]
    return did_you_mean(others)
