"""Finds the modules that hold an optimizer's parameters, and what the modules call them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parameter import is_lazy

_CHEAP_BYTES = 1 << 20  # running statistics, not the attention masks of a long context
_DATA_PARALLEL = "module."
# What other wrappers put into the names of the modules that they wrap.
_WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


@dataclass(frozen=True)
class Naming:
    """The names of some parameters, and the outermost modules that hold them."""

    names: dict[int, str]  # id of a parameter -> name
    holders: tuple[weakref.ref[nn.Module], ...]

    def buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The buffers of the holders, as they are now."""
        yield from self._each("named_buffers")

    def cheap_buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Those that are so small that looking at them after each step costs nothing."""
        for name, buffer in self.buffers():
            if buffer.numel() * buffer.element_size() <= _CHEAP_BYTES:
                yield name, buffer

    def parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """All parameters of the holders, those of no optimizer included."""
        yield from self._each("named_parameters")

    def _each(self, kind: str) -> Iterator[tuple[str, torch.Tensor]]:
        for index, holder in enumerate(self.holders):
            module = holder()
            if module is not None:
                prefix = _prefix(module, index, len(self.holders))
                for name, tensor in getattr(module, kind)():
                    if not is_lazy(tensor):  # has no shape until the first forward
                        yield prefix + _unwrapped(name), tensor


class Namer:
    """Names the parameters of one optimizer after the other; looks through the process only when it has to."""

    def __init__(self) -> None:
        self._outermost: list[weakref.ref[nn.Module]] = []

    def name(self, parameters: Sequence[torch.Tensor]) -> Naming:
        """What the outermost modules that hold them call these parameters; some may have no name."""
        naming = self._named_by_known(parameters)
        if len(naming.names) < len({id(parameter) for parameter in parameters}):
            self._outermost = [weakref.ref(module) for module in _outermost_modules()]
            naming = self._named_by_known(parameters)
        return naming

    def _named_by_known(self, parameters: Sequence[torch.Tensor]) -> Naming:
        order = {id(parameter): place for place, parameter in enumerate(parameters)}
        known = [module for module in (each() for each in self._outermost) if module is not None]
        holders = [module for module in known if any(id(each) in order for each in module.parameters())]
        holders.sort(key=lambda module: _first_place(module, order))
        naming = Naming({}, tuple(weakref.ref(module) for module in holders))
        for name, parameter in naming.parameters():
            if id(parameter) in order:
                naming.names.setdefault(id(parameter), name)
        return naming


def _outermost_modules() -> list[nn.Module]:
    # type(), not isinstance(): asking a lazy proxy for its class would make it load what it stands for
    modules = [each for each in gc.get_objects() if issubclass(type(each), nn.Module)]
    modules = [module for module in modules if "_modules" in module.__dict__]
    inner = {id(child) for module in modules for child in module.__dict__["_modules"].values()}
    return [module for module in modules if id(module) not in inner]


def _first_place(module: nn.Module, order: dict[int, int]) -> tuple[int, str]:
    """Where the optimizer first meets a parameter of the module: the same in every run, unlike memory addresses."""
    places = [order[id(parameter)] for parameter in module.parameters() if id(parameter) in order]
    return min(places), type(module).__name__


def _prefix(module: nn.Module, index: int, count: int) -> str:
    """Nothing where one module holds everything; else the names of several could be the same."""
    return f"{type(module).__name__}[{index}]." if count > 1 else ""


def _unwrapped(name: str) -> str:
    name = name.removeprefix(_DATA_PARALLEL)
    for inserted in _WRAPPERS:
        name = name.replace(inserted, "")
    return name
