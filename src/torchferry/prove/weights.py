"""Gives the migrated run the weights of the reference: for programs that draw them on the device."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import torch

from torchferry.observe.modes import unobserved
from torchferry.prove.naming import Namer
from torchferry.prove.recorder import current_rank
from torchferry.prove.settings import ProofSettings, Weights

_Tensors = dict[str, torch.Tensor]


def share_weights(settings: ProofSettings) -> None:
    """From now on, save or load what an optimizer is given: its parameters, and all else that their modules hold.

    The moment is the end of `Optimizer.add_param_group`, which every optimizer's constructor calls: the model is made
    by then and has not computed anything yet. The n-th group of a process gets what the n-th group of the process
    with the same rank had.
    """
    original: Any = torch.optim.Optimizer.add_param_group
    numbers = itertools.count()

    @functools.wraps(original)
    def add_param_group(self: torch.optim.Optimizer, param_group: dict[str, Any]) -> None:
        original(self, param_group)
        file = Path(settings.weights_folder) / f"rank{current_rank() or 0}-group{next(numbers)}.pt"
        with unobserved():
            here = _tensors(self.param_groups[-1]["params"])
            if settings.weights is Weights.SAVE:
                torch.save({name: each.detach().cpu() for name, each in here.items()}, file)
            elif file.exists():
                _fill(here, torch.load(file, map_location="cpu", weights_only=True))

    torch.optim.Optimizer.add_param_group = add_param_group  # type: ignore[method-assign]


def _tensors(parameters: list[torch.Tensor]) -> _Tensors:
    naming = Namer().name(parameters)
    own = {f"parameter {place}": parameter for place, parameter in enumerate(parameters)}
    others = {f"parameter {name}": each for name, each in naming.parameters()}
    return {**own, **others, **{f"buffer {name}": each for name, each in naming.buffers()}}


def _fill(here: _Tensors, saved: _Tensors) -> None:
    """Where the names and shapes are the same; what does not fit is left, and the comparison will say so."""
    for name, tensor in here.items():
        source = saved.get(name)
        if source is not None and source.shape == tensor.shape:
            tensor.detach().copy_(source)
