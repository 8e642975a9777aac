"""Whose a parameter or buffer is: the names of models and modules that have been called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from torchferry.observe.where import Site

_STATISTICS = "running_"  # as the buffers of every normalisation are called
_WRAPPED = "module."  # in the names of what DistributedDataParallel holds


class Owner(NamedTuple):
    """Where a tensor is in the program."""

    model: str
    module: str
    name: str


class Owners:
    """Learns of modules as they are called, the inner ones first."""

    def __init__(self) -> None:
        self._parameters: Any = WeakTensorKeyDictionary()  # -> Owner
        self._known: set[int] = set()  # modules; they are kept by their models
        self._modules: dict[tuple[str, str], torch.nn.Module] = {}

    def learn(self, module: torch.nn.Module, site: Site) -> None:
        """A module was called there."""
        if id(module) in self._known:
            return
        self._known.add(id(module))
        path = path_of(module, site)
        for inner, part in module.named_modules():
            whole = ".".join(filter(None, (path, inner.removeprefix(_WRAPPED))))
            self._modules.setdefault((site.model, whole), part)
            self._learn_parameters(part, site.model, whole)

    def of(self, parameter: torch.Tensor, unnamed: str) -> Owner:
        """Whose it is; of what no module has, this name."""
        if parameter not in self._parameters:  # sharding puts others in their places while a module is called
            for (model, path), module in self._modules.items():
                self._learn_parameters(module, model, path)
            self._parameters.setdefault(parameter, Owner("", "", unnamed))
        owner: Owner = self._parameters[parameter]
        return owner

    def _learn_parameters(self, module: torch.nn.Module, model: str, path: str) -> None:
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter not in self._parameters:
                self._parameters[parameter] = Owner(model, path, name)

    def parameters(self) -> Iterator[torch.Tensor]:
        """All of them."""
        return iter(list(self._parameters.keys()))

    def statistics(self) -> Iterator[tuple[Owner, torch.Tensor]]:
        """The buffers that normalisations keep their statistics in."""
        seen = set()
        for (model, path), module in list(self._modules.items()):
            for name, buffer in module._buffers.items():
                if buffer is None or id(buffer) in seen or not name.startswith(_STATISTICS):
                    continue
                if buffer.is_floating_point():
                    seen.add(id(buffer))
                    yield Owner(model, path, name), buffer


def path_of(module: torch.nn.Module, site: Site) -> str:
    """Its path in the model; "" for the model itself, which goes by its type elsewhere."""
    return "" if site.module == type(module).__name__ else site.module
