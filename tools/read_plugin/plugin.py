"""What was read of a plugin."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plugin:
    """What a running plugin has."""

    torch: str
    version: str
    operators: tuple[str, ...]  # of ATen, with a kernel for the device
    custom: tuple[str, ...]  # in a library of the vendor's
    autograd: tuple[str, ...]  # with a gradient of the vendor's own
    autocast: tuple[str, ...]
    names: tuple[str, ...]  # torch.<device>.*
