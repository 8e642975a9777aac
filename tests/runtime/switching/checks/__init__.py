"""Checks that turn the layer on and off themselves; each begins and ends without it."""

from __future__ import annotations

import torch


def after_each() -> None:
    """Off, whatever the check has left."""
    from torchferry import runtime

    runtime.deactivate()
    assert torch.device("cuda").type == "cuda"
