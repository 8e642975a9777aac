"""Names of calls in msprobe's dumps: Functional.conv2d.0.forward, Module.layer1.conv1.Conv2d.backward.0. No torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

FORWARD, BACKWARD = "forward", "backward"
MODULE = "Module"  # whose calls are those of a whole module
GRADIENTS = "parameters_grad"
_OF_MODULES = re.compile(
    rf"(?:Module|Cell)\.(?P<path>.+)\.(?P<kind>[^.]+)\.(?P<phase>{FORWARD}|{BACKWARD}|{GRADIENTS})(?:\.(?P<number>\d+))?"
)
_OF_APIS = re.compile(rf"(?P<library>[^.]+)\.(?P<name>.+)\.(?P<number>\d+)\.(?P<phase>{FORWARD}|{BACKWARD})")
# Tensor.__iadd__ is what PyTorch calls add_
_IN_PLACE = re.compile(r"__i(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__")
_REVERSED = re.compile(r"__r(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__")
_RENAMED = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder"}


@dataclass(frozen=True, slots=True)
class ApiName:
    """A name taken apart."""

    operator: str  # Functional::conv2d, Module::Conv2d: as operators are named, library first
    phase: str  # forward, backward
    number: int  # of this API's calls, from 0
    module: str = ""  # the path, of a module's own call

    @property
    def is_module(self) -> bool:
        """Whether it is the call of a whole module, with all that happens inside."""
        return is_module_call(self.operator)

    @property
    def is_gradients(self) -> bool:
        """Whether it is no call, but what a module's parameters have got of gradients."""
        return self.operator == f"{MODULE}::{GRADIENTS}"


def is_module_call(operator: str) -> bool:
    """Whether an operator of a record is the call of a whole module in a dump."""
    return operator.startswith(f"{MODULE}::")


@lru_cache(maxsize=100_000)
def parsed_name(text: str) -> ApiName:
    """The parts of a name; one of an unknown form is an operator of no phase."""
    match = _OF_MODULES.fullmatch(text)
    if match is not None:
        number, path = int(match["number"] or 0), match["path"]
        if match["phase"] == GRADIENTS:
            return ApiName(f"{MODULE}::{GRADIENTS}", BACKWARD, number, path)
        return ApiName(f"{MODULE}::{match['kind']}", match["phase"], number, path)
    match = _OF_APIS.fullmatch(text)
    if match is not None:
        operator = f"{match['library']}::{_plain(match['name'])}"
        return ApiName(operator, match["phase"], int(match["number"]))
    library, _, name = text.partition(".")
    return ApiName(f"{library}::{name or library}", "", 0)


def forward_name(name: str) -> str:
    """That of the forward call to which a backward call belongs; any other as it is."""
    parsed = parsed_name(name)
    if parsed.phase != BACKWARD or parsed.is_gradients:
        return name
    if parsed.is_module:
        return name.replace(f".{BACKWARD}.", f".{FORWARD}.")
    return name.removesuffix(BACKWARD) + FORWARD


def _plain(name: str) -> str:
    """mul for __mul__ and __rmul__, mul_ for __imul__: one name for one operator."""
    for pattern, ending in ((_IN_PLACE, "_"), (_REVERSED, "")):
        match = pattern.fullmatch(name)
        if match is not None:
            return _RENAMED.get(match[1], match[1]) + ending
    if name.startswith("__") and name.endswith("__") and len(name) > 4:
        return _RENAMED.get(name[2:-2], name[2:-2])
    return name
