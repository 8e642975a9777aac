"""What a vendor's module has beside CUDA's names: read from `extras.txt` in the vendor's folder.

One entry a line, KIND NAME [VALUE...]; values are JSON. Kinds:
  nothing NAME             a function that does nothing
  constant NAME VALUE      a function that answers a value
  switch NAME VALUE        an attribute that can be set, with its first value
  setter NAME KEY          a function that remembers its argument under a key
  getter NAME KEY VALUE    a function that answers what was remembered, VALUE before that
  negation NAME KEY VALUE  a function that answers the opposite of it
  nonfinite NAME           a function that says whether a tensor, or one of a list, holds inf or nan
  context NAME             a with block or decorator that does nothing
  alias NAME OTHER         another name for a function of the module
  property NAME VALUE      a field of get_device_properties
  cores NAME               such a field that counts cores: here those of the host
  capability_env VARIABLE  an environment variable that get_device_capability answers from
  own_scaler NAME          a gradient scaler that also takes dynamic=False and computes in float32 only
  function NAME MODULE:F   a function of another module, which is imported when it is called
  library NAME MODULE      a module below torch that has what another module has, which is imported when it is used
  in_torch NAME MODULE:F   the same, under a name below torch
  profile NAME FILE        a block that leaves a trace below the folder it is given
  profile_config NAME {}   what such a block collects: switches, and lists of values
  options NAME {}          a function that checks options of a compiler: lists of values, or what they must be
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torchferry.errors import VendorError
from torchferry.sim.device_module import profiling

EXTRAS_FILE = "extras.txt"


@dataclass(frozen=True)
class Extra:
    """One line of the file."""

    kind: str
    name: str  # dotted, below the module
    key: str = ""
    value: Any = None


# kind -> whether a key and a JSON value follow the name
_SHAPES = {
    "nothing": (False, False),
    "constant": (False, True),
    "switch": (False, True),
    "setter": (True, False),
    "getter": (True, True),
    "negation": (True, True),
    "nonfinite": (False, False),
    "context": (False, False),
    "alias": (True, False),
    "property": (False, True),
    "cores": (False, False),
    "capability_env": (False, False),
    "own_scaler": (False, False),
    "function": (True, False),
    "in_torch": (True, False),
    "library": (True, False),
    "profile": (False, True),
    "profile_config": (False, True),
    "options": (False, True),
}


def load_extras(vendor_folder: Path) -> tuple[Extra, ...]:
    """Read a vendor's extras; without the file there are none."""
    file = vendor_folder / EXTRAS_FILE
    if not file.is_file():
        return ()
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    return tuple(
        _parse(file, number, line) for number, line in lines if line.strip() and not line.startswith("#")
    )


def _parse(file: Path, number: int, line: str) -> Extra:
    kind, _, rest = line.strip().partition(" ")
    if kind not in _SHAPES:
        raise VendorError(f"{file}: line {number}: unknown kind '{kind}'; known: {', '.join(_SHAPES)}")
    has_key, has_value = _SHAPES[kind]
    parts = rest.split(None, has_key + has_value)
    if len(parts) != 1 + has_key + has_value:
        raise VendorError(f"{file}: line {number}: '{kind}' takes {1 + has_key + has_value} words after it")
    try:
        value = json.loads(parts[-1]) if has_value else None
    except json.JSONDecodeError:
        raise VendorError(f"{file}: line {number}: {parts[-1]!r} is no JSON value; correct it") from None
    return Extra(kind, parts[0], parts[1] if has_key else "", value)


def properties(extras: Iterable[Extra]) -> dict[str, Any]:
    """The fields of get_device_properties that the extras describe."""
    fields = {extra.name: extra.value for extra in extras if extra.kind == "property"}
    cores = {extra.name: os.cpu_count() or 1 for extra in extras if extra.kind == "cores"}
    return {**fields, **cores}


def functions(extras: Iterable[Extra]) -> dict[str, Callable[..., Any]]:
    """The functions that the extras describe, by dotted name."""
    remembered: dict[str, Any] = {}
    makers: dict[str, Callable[[Extra], Callable[..., Any]]] = {
        "nothing": lambda extra: _answering(None),
        "constant": lambda extra: _answering(extra.value),
        "setter": lambda extra: _setter(extra, remembered),
        "getter": lambda extra: lambda: remembered.get(extra.key, extra.value),
        "negation": lambda extra: lambda: not remembered.get(extra.key, not extra.value),
        "nonfinite": lambda extra: has_inf_or_nan,
        "context": lambda extra: nothing_inside,
        "function": lambda extra: imported_when_called(extra.key),
        "profile": lambda extra: profiling.profile(extra.value),
        "profile_config": lambda extra: profiling.profile_config(extra.value),
        "options": lambda extra: profiling.options(extra.value),
    }
    return {extra.name: makers[extra.kind](extra) for extra in extras if extra.kind in makers}


def imported_when_called(name: str) -> Callable[..., Any]:
    """A function that is called as module:function; nothing is imported before it is."""
    module, _, leaf = name.partition(":")

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), leaf)(*args, **kwargs)

    call.__name__ = call.__qualname__ = leaf
    return call


def _answering(value: Any) -> Callable[..., Any]:
    def answer(*_: object, **__: object) -> Any:
        return value

    return answer


def _setter(extra: Extra, remembered: dict[str, Any]) -> Callable[..., None]:
    def remember(*args: Any, **kwargs: Any) -> None:
        values = [*args, *kwargs.values()]
        if len(values) != 1:
            raise TypeError(f"{extra.name}() takes one argument, got {len(values)}")
        remembered[extra.key] = values[0]

    return remember


def has_inf_or_nan(tensors: Any) -> bool:
    """Whether a tensor, or one of a list of tensors, holds inf or nan."""
    if isinstance(tensors, torch.Tensor):
        return not bool(torch.isfinite(tensors).all())
    return any(has_inf_or_nan(tensor) for tensor in tensors)


@contextlib.contextmanager
def nothing_inside(*_: object, **__: object) -> Iterator[None]:
    """A block that changes nothing."""
    yield
