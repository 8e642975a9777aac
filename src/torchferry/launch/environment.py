"""The environment in which every Python process takes part in a run as soon as it imports torch. Imports no torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from glob import escape, glob
from pathlib import Path

from torchferry import variables
from torchferry.emulate.environment import EmulationSettings
from torchferry.launch.autoload import autoload
from torchferry.launch.parts import PartSettings
from torchferry.launch.place import Device, Place
from torchferry.runtime.settings import LayerSettings
from torchferry.sim.environment import SimSettings
from torchferry.vendors.model import Vendor

STARTUP = Path(__file__).parent / "startup"
AUTOLOAD_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_NEVER = "0"  # the user wants no emulation that was not asked for
_FIRST_WITH_AUTOLOAD = (2, 5)
_ENTRY_POINTS = "[torch.backends]"


def environment_at(
    place: Place,
    *parts: PartSettings,
    extra: Mapping[str, str] | None = None,
    ours: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Our environment, changed so that the processes below run at that place and play these parts."""
    known = os.environ if ours is None else ours
    added = dict(extra or {})
    for part in parts:
        added |= part.environment()
    return child_environment(known, place.vendor, place.machine(), place.layer, added)


def child_environment(
    ours: Mapping[str, str],
    vendor: Vendor | None,
    device: Device | None,
    layer: LayerSettings | None,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Our environment, changed so that the processes below simulate or emulate a device, lay CUDA's names over it, or both.

    `vendor` is None where there is no device (the reference on the CPU). With a vendor and without `device` the
    vendor's real plugin is used. `extra` are further variables.
    """
    kept = {name: value for name, value in ours.items() if name not in variables.ALL}
    added = dict(extra or {})
    if isinstance(device, SimSettings):
        added[variables.SIM] = device.encode()
    elif device is not None:
        added[variables.EMULATE] = device.encode()
    elif ours.get(variables.EMULATE) == _NEVER:
        kept[variables.EMULATE] = _NEVER
    if layer is not None:
        added[variables.LAYER] = layer.encode()
    folders: list[Path] = []
    if vendor is not None and isinstance(device, SimSettings):
        from torchferry.sim.shims import shim_folders

        folders = shim_folders(vendor)
    on_real_plugin = vendor is not None and device is None
    if added and not _torch_calls_us(ours, others_too=on_real_plugin):
        folders = [*folders, STARTUP]
        if not on_real_plugin:
            added[AUTOLOAD_SWITCH] = "0"
    elif isinstance(device, EmulationSettings):
        folders = [STARTUP]  # a program may import the plugin before torch
    path = [*map(str, folders), *filter(None, [ours.get("PYTHONPATH")])]
    return {**kept, **added, **({"PYTHONPATH": os.pathsep.join(path)} if path else {})}


def torch_loads_plugins(environment: Mapping[str, str]) -> bool:
    """Whether `import torch` calls what other packages ask it to call."""
    from torchferry.building.toolchain import installed_release

    return environment.get(AUTOLOAD_SWITCH, "1") == "1" and installed_release() >= _FIRST_WITH_AUTOLOAD


def _torch_calls_us(environment: Mapping[str, str], others_too: bool) -> bool:
    """Whether `import torch` calls `autoload`; a plugin that it calls as well would want the device for itself."""
    if not torch_loads_plugins(environment):
        return False
    ours = f"{autoload.__module__}:{autoload.__name__}"
    called = set(_called_by_torch())
    return ours in called if others_too else called == {ours}


def _called_by_torch() -> Iterator[str]:
    """What installed packages want called. importlib.metadata knows it as well, but importing that takes as long as
    all the rest of the launcher."""
    files = [
        Path(file)
        for folder in dict.fromkeys(sys.path)
        for file in glob(os.path.join(escape(folder), "*-info", "entry_points.txt"))
    ]
    # The first one of a package counts: a source folder may hold an old one beside the installed one.
    first = {file.parent.name.partition("-")[0].removesuffix(".egg"): file for file in reversed(files)}
    for file in first.values():
        section = ""
        for line in file.read_text("utf-8", "replace").splitlines():
            if line.startswith("["):
                section = line.strip()
            elif section == _ENTRY_POINTS and "=" in line:
                yield line.partition("=")[2].strip()
