"""The parts that a process of a run plays besides its program: a proof, a capture, a record, a profile.

Each part has a class of settings in a module called `settings` of its own package. The class says which variable of the
environment it goes by and which function begins the part; the variable's value names the class. Imports no torch.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

from torchferry import variables
from torchferry.settings import Settings, from_plain, unreadable

# Inside code that torch.compile has made no operator shows; what it would compile runs as it is written instead.
UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}
_CLASS = "settings"
# Whoever can set a variable may choose among our settings, and can have nothing else imported or called.
_OURS = re.compile(r"(torchferry(?:\.[a-z_]+)*\.settings):([A-Z]\w*)")


@dataclass(frozen=True)
class PartSettings(Settings):
    """What one part is told."""

    starts: ClassVar[str]  # module:function, called with the settings
    # Where the CPU stands for CUDA: whether the library that computes as CUDA does may be built for it,
    may_build: ClassVar[bool] = False
    # and whether the part tells by itself which tensors would be on a device.
    places_tensors: ClassVar[bool] = False
    is_uncompiled: ClassVar[bool] = False  # it has to see all operators

    def encode(self) -> str:
        """The value of the environment variable."""
        name = f"{type(self).__module__}:{type(self).__name__}"
        return json.dumps({_CLASS: name, **asdict(self)}, separators=(",", ":"))

    def environment(self) -> dict[str, str]:
        """The variables that make a process play the part."""
        return {self.variable: self.encode(), **(UNCOMPILED if self.is_uncompiled else {})}

    def start(self) -> None:
        """Begin the part in this process."""
        module, _, function = self.starts.partition(":")
        getattr(importlib.import_module(module), function)(self)


def hash_seed(seed: int | None) -> dict[str, str]:
    """One order of sets for all processes, where there is a seed."""
    return {} if seed is None else {"PYTHONHASHSEED": str(seed)}


def parts_in(environment: Mapping[str, str]) -> tuple[PartSettings, ...]:
    """What the environment asks for, in the order in which it begins."""
    return tuple(_part(name, environment[name]) for name in variables.PARTS if environment.get(name))


def _part(variable: str, value: str) -> PartSettings:
    try:
        plain = json.loads(value)
        if not isinstance(plain, dict):
            raise ValueError(f"it is to be an object, not {type(plain).__name__}")
        return from_plain(_class(variable, str(plain.pop(_CLASS, ""))), plain)
    except (ValueError, RecursionError) as error:
        raise unreadable(variable, error) from None


def _class(variable: str, name: str) -> type[PartSettings]:
    match = _OURS.fullmatch(name)
    if match:
        try:
            found = getattr(importlib.import_module(match[1]), match[2], None)
        except ModuleNotFoundError:
            found = None
        if isinstance(found, type) and issubclass(found, PartSettings):
            if getattr(found, "variable", None) == variable:
                return found
    raise ValueError("it names no settings of ours")
