"""The device that a run is to have, as settings for its processes, and what must be built for it. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchferry.building.progress import Progress
from torchferry.emulate import build as emulated_build
from torchferry.emulate import environment as emulated
from torchferry.emulate.environment import EmulationSettings
from torchferry.launch.environment import Device
from torchferry.launch.plugin import Means
from torchferry.sim import build as simulated_build
from torchferry.sim import environment as simulated
from torchferry.vendors.model import Vendor


def settings_of(
    means: Means,
    vendor: Vendor,
    devices: int | None = None,
    memory: int | str | None = None,
    strict: bool = False,
    vendor_paths: Sequence[str] = (),
    shared_randomness: bool = False,
    native: bool = False,
) -> Device | None:
    """The machine that is simulated or emulated; None for the real one."""
    paths = tuple(vendor_paths)
    if means is Means.SIMULATED:
        return simulated.settings_for(vendor, devices, memory, strict, paths, shared_randomness)
    if means is Means.EMULATED:
        return emulated.settings_for(vendor, devices, memory, paths, native, shared_randomness)
    return None


def build_for(device: Device, vendor: Vendor, progress: Progress | None = None) -> None:
    """Compile what the device needs and is not there yet."""
    if isinstance(device, EmulationSettings):
        emulated_build.library_folder(vendor, Path(device.plugin), progress)
    else:
        simulated_build.library_path(progress)
