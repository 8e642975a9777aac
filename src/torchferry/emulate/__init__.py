"""A vendor's own plugin on this machine without the vendor's hardware: its toolkit is replaced, and computes on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchferry.emulate.activation import ActiveEmulation

__all__ = ["activate", "active"]


def activate(
    vendor: str,
    devices: int | None = None,
    memory: int | str | None = None,
    native: bool = False,
    vendor_paths: tuple[str, ...] = (),
    shared_randomness: bool = False,
) -> None:
    """Run a vendor's own plugin in this process: `activate("ascend")`, then use torch.npu and "npu:0".

    `ferry emulate setup` fetches the plugin and builds what stands for its toolkit; what is not built yet is built now.
    `memory` is that of each device, in bytes or as "32GiB"; what is left out is that of a typical server. With `native`
    the vendor's own migration is imported: CUDA's names then mean its device. With `shared_randomness` the devices
    draw from the CPU's default generator. A process can emulate one vendor only.
    """
    import torch  # noqa: F401  first: in a program that `ferry run` has started, this activates already

    from torchferry.emulate.activation import activate_settings
    from torchferry.emulate.environment import settings_for
    from torchferry.vendors.registry import get_vendor

    known = get_vendor(vendor, tuple(map(Path, vendor_paths)))
    now = active()
    if now is not None and now.vendor.name == known.name:
        return
    activate_settings(settings_for(known, devices, memory, vendor_paths, native, shared_randomness))


def active() -> ActiveEmulation | None:
    """What is emulated in this process; None when nothing is."""
    # nothing is imported to say that it is off
    activation = sys.modules.get("torchferry.emulate.activation")
    now: ActiveEmulation | None = None if activation is None else activation.active()
    return now
