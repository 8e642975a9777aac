"""What a user wants to run, as a command line. Imports no torch."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A script or a module, in this many processes if torchrun is to start it."""

    target: str
    is_module: bool
    arguments: tuple[str, ...]
    torchrun: tuple[str, ...] | None  # options of torchrun; None: without it

    def command(self) -> list[str]:
        """The command line; the program sees itself as `python script` would show it."""
        module = ["-m"] if self.is_module else []
        torchrun = [] if self.torchrun is None else ["-m", "torch.distributed.run", *self.torchrun]
        return [sys.executable, *torchrun, *module, self.target, *self.arguments]

    def shown(self) -> str:
        """How its user calls it."""
        return shlex.join([*(["-m"] if self.is_module else []), self.target, *self.arguments])
