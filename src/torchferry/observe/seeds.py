"""One seed for every generator of a process."""

from __future__ import annotations

import random
from contextlib import suppress

import torch


def seed_all(seed: int) -> None:
    """Python's, PyTorch's and NumPy's; a program that sets its own afterwards has its own."""
    random.seed(seed)
    torch.manual_seed(seed)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(seed)
