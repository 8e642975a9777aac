"""What the command line says about the passes that restructure a program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Distributed:
    """How a program for one card becomes one for many."""

    main: str  # the script that starts the training: relative to the project, with forward slashes
    model: str = ""  # the variable that holds the model; "" when the pass is to find it
    split_batch: bool = False  # the script's batch size is that of all cards together, not of each
    sync_batchnorm: bool = False


class AmpForm(str, Enum):
    """Whose mixed precision is written."""

    TORCH = "torch"  # autocast and GradScaler
    APEX = "apex"  # amp.initialize and scale_loss


@dataclass(frozen=True)
class PassSettings:
    """None: that pass is not asked for."""

    distributed: Distributed | None = None
    amp: AmpForm | None = None
