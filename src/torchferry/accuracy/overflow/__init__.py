"""Finds the first operator of a program whose results are not finite though its inputs were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchferry.accuracy.overflow.process import CheckedBlock


def check_block(path: Path | None = None) -> CheckedBlock:
    """A context in which every operator is checked: the first that overflows is printed, and saved to this file."""
    from torchferry.accuracy.overflow.process import CheckedBlock

    return CheckedBlock(path)
