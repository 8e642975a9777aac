"""The simulated accelerator: a device that carries a vendor's name and limits and computes on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchferry.sim.activation import ActiveSimulation

__all__ = ["activate", "is_active"]


def activate(
    vendor: str,
    devices: int | None = None,
    memory: int | str | None = None,
    strict: bool = False,
    vendor_paths: tuple[str, ...] = (),
    shared_randomness: bool = False,
    card: str | None = None,
) -> None:
    """Simulate a vendor's device in this process: `activate("ascend")`, then use torch.npu and "npu:0".

    `memory` is that of each device, in bytes or as "32GiB"; what is left out is that of a typical server. With
    `strict` an operator that the vendor lacks raises, whatever the vendor's adapter does. With `shared_randomness`
    the devices draw from the CPU's default generator: the program then draws the numbers that it would draw on the
    CPU alone. `card` is one of those that `ferry vendors` lists for the vendor. A process can simulate one vendor only.
    """
    import torch  # noqa: F401  first: in a program that `ferry run` has started, this activates already

    from torchferry.sim.activation import activate_settings
    from torchferry.sim.environment import settings_for
    from torchferry.vendors.registry import get_vendor, with_card

    known = with_card(get_vendor(vendor, tuple(map(Path, vendor_paths))), card)
    activate_settings(settings_for(known, devices, memory, strict, vendor_paths, shared_randomness))


def is_active() -> bool:
    """Whether this process simulates a device."""
    return simulated() is not None


def simulated() -> ActiveSimulation | None:
    """What is simulated in this process; None when nothing is. The simulator is not imported to say so."""
    activation = sys.modules.get("torchferry.sim.activation")
    now: ActiveSimulation | None = None if activation is None else activation.active()
    return now


def fallback_calls() -> dict[str, int]:
    """Operators that the simulated device has computed on the CPU -> how often, up to now."""
    if simulated() is None:
        return {}
    from torchferry.sim import native

    return {
        use.name: use.calls
        for use in native.operator_uses()
        if use.verdict is native.OperatorVerdict.FALLS_BACK
    }
