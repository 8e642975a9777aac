"""Records what operators compute, replays it on another device, and names the operator that is wrong."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """`torchferry.accuracy.dumper`, imported when it is asked for."""
    if name == "dumper":
        from torchferry.accuracy.dumping import Dumper

        return Dumper
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
