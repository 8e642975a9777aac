"""What amp.initialize set up in this process; programs read the loss scale from here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from .properties import Properties
from .scaler import LossScaler


@dataclass
class AmpState:
    """The settings, one scaler for each loss, and the device types whose operators are cast (O1)."""

    opt_properties: Properties = field(default_factory=lambda: Properties(enabled=False))
    loss_scalers: list[LossScaler] = field(default_factory=list)
    verbosity: int = 1
    cast_devices: tuple[str, ...] = ()


_amp_state = AmpState()


def master_params(optimizer: torch.optim.Optimizer) -> Iterator[Any]:
    """The parameters that the optimizer steps: float32 masters where there are some."""
    for group in optimizer.param_groups:
        yield from group["params"]


def maybe_print(message: str) -> None:
    """Print on the first process, unless the program asked for silence."""
    is_first = not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0
    if _amp_state.verbosity > 0 and is_first:
        print(message)
