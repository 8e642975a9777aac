"""The table of what the layer changes: every entry can be applied, taken back and explained."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from torchferry.runtime import c_types

_MISSING = object()
_HERE = __name__.rpartition(".")[0]


@dataclass(frozen=True)
class Patch:
    """One name that means something else while the layer is active."""

    name: str  # in full, as a program writes it: torch.cuda.is_available
    owner: Any  # the module or class that holds it
    attribute: str
    value: Any
    means: str  # what it means now, in a few words: "torch.npu.is_available"


@dataclass(frozen=True)
class Action:
    """A change that is not a name: a registration, a constructor written in C."""

    name: str
    means: str
    do: Callable[[], None]
    undo: Callable[[], None]


Change = Patch | Action


class PatchTable:
    """The changes of one activation, in the order in which they were made."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self.changes: list[Change] = []
        # functions and classes that were replaced, and what stands for them, by the identity of the first
        self.replaced: dict[int, tuple[Any, Any]] = {}

    def apply(self, changes: Iterable[Change]) -> None:
        """Make changes; should one fail, those that were made are taken back."""
        try:
            for change in changes:
                if isinstance(change, Action):
                    change.do()
                    self._undo.append(change.undo)
                else:
                    self._put(change)
                self.changes.append(change)
        except BaseException:
            self.revert()
            raise

    def revert(self) -> None:
        """Take everything back, the last change first."""
        while self._undo:
            self._undo.pop()()
        self.changes.clear()
        self.replaced.clear()

    def _put(self, patch: Patch) -> None:
        owner, attribute = patch.owner, patch.attribute
        # Only what the owner holds itself is put back; an inherited attribute shows again when ours is deleted.
        before = vars(owner).get(attribute, _MISSING)
        if before is patch.value:
            return
        _set(owner, attribute, patch.value)
        _name(patch.value, owner, attribute)
        self._undo.append(lambda: _put_back(owner, attribute, before))
        if inspect.isroutine(before) or inspect.isclass(before):
            # the name that is nearest to torch comes first
            self.replaced.setdefault(id(before), (before, patch.value))


def holders_in_torch(name: str, function: Any) -> list[ModuleType]:
    """The modules of torch that hold a function under its name."""
    modules = [module for path, module in list(sys.modules.items()) if path.startswith("torch.")]
    return [module for module in modules if getattr(module, "__dict__", {}).get(name) is function]


def _name(value: Any, owner: Any, attribute: str) -> None:
    """A function that was made for a name carries it, so that it can be pickled as the one it stands for."""
    made_here = isinstance(value, FunctionType) and value.__globals__["__name__"].startswith(_HERE)
    if not made_here or not value.__closure__:
        return
    found: Any = sys.modules.get(value.__module__)
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is value:  # it leads to itself under its own name
        return
    if isinstance(owner, type):
        value.__module__, value.__qualname__ = owner.__module__, f"{owner.__qualname__}.{attribute}"
    else:
        value.__module__, value.__qualname__ = owner.__name__, attribute


def _set(owner: Any, attribute: str, value: Any) -> None:
    if c_types.is_written_in_c(owner):
        c_types.set_attribute(owner, attribute, value)
    else:
        setattr(owner, attribute, value)


def _put_back(owner: Any, attribute: str, before: Any) -> None:
    if before is not _MISSING:
        _set(owner, attribute, before)
    elif c_types.is_written_in_c(owner):
        c_types.delete_attribute(owner, attribute)
    else:
        delattr(owner, attribute)


# Libraries that were imported before the layer: `from torch.cuda import is_available` holds the original.

# torch's own modules get what they need by name, except that those of torch.cuda copy names from one another; this
# package must keep the originals.
_LEFT_ALONE = ("torch", "torchferry")
_NOT_LEFT_ALONE = "torch.cuda."


def of_imported_libraries(replaced: Mapping[int, tuple[Any, Any]]) -> Iterator[Change]:
    """Put the new function wherever a module that was imported before holds the original under a name of its own."""
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue
        path = module.__name__
        if path.partition(".")[0] in _LEFT_ALONE and not path.startswith(_NOT_LEFT_ALONE):
            continue
        for name, value in list(vars(module).items()):
            original, now = replaced.get(id(value), (None, None))
            if original is value is not None:
                means = f"redirected to {getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"
                yield Patch(f"{path}.{name}", module, name, now, means)
