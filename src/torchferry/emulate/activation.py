"""Turns the emulated device on in this process: the libraries, the vendor's plugin, its own migration if that is wanted."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from torchferry.emulate import build, plugins, toolkits
from torchferry.emulate.environment import EmulationSettings
from torchferry.emulate.importing import environment_kept, import_plugin
from torchferry.emulate.libraries import Libraries
from torchferry.emulate.programs import put_on_path
from torchferry.errors import RunError
from torchferry.observe import torchvision_operators
from torchferry.sim import simulated
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor


@dataclass(frozen=True)
class ActiveEmulation:
    """What this process emulates."""

    vendor: Vendor
    settings: EmulationSettings
    libraries: Libraries

    def for_children(self) -> dict[str, str]:
        """The environment variables that make a process emulate the same."""
        return {EmulationSettings.variable: self.settings.encode()}


_active: list[ActiveEmulation] = []


def active() -> ActiveEmulation | None:
    """What is emulated in this process; None when nothing is."""
    return _active[0] if _active else None


def activate_settings(settings: EmulationSettings) -> None:
    """Emulate as these settings say. Doing it again with the same vendor does nothing."""
    vendor = get_vendor(settings.vendor, tuple(map(Path, settings.vendor_paths)))
    now = active()
    if now is not None:
        if now.vendor.name != vendor.name:
            raise RunError(
                f"this process emulates {now.vendor.name}; start another one to emulate {vendor.name}"
            )
        return
    plugins.refuse_without_emulation(vendor)
    _refuse_taken_place()
    toolkit = toolkits.load(vendor.emulation.toolkit)
    folder = build.library_folder(vendor, _plugin_folder(settings, vendor))
    libraries = Libraries(toolkit, folder)
    libraries.configure(settings.devices, settings.memory, settings.card, settings.shared_randomness)
    _active.append(ActiveEmulation(vendor, settings, libraries))
    torchvision_operators.install()
    homes = toolkit.home_folders(folder)
    _import(vendor, Path(settings.plugin), {variable: str(place) for variable, place in homes.items()})
    put_on_path(toolkit.programs, homes, toolkit.folder, os.environ)
    if settings.native:
        with environment_kept():
            importlib.import_module(vendor.migrations[0])


def _refuse_taken_place() -> None:
    """PyTorch has one place for a device that it does not know itself."""
    name = torch._C._get_privateuse1_backend_name()
    there = simulated()
    if there is not None:
        raise RunError(
            f"this process simulates {there.vendor.name} already, and can't emulate as well; start another one"
        )
    if name != "privateuseone":
        raise RunError(
            f"another package has taken PyTorch's place for extra devices (it is called `{name}`); is the vendor's "
            "plugin loaded by itself? Use ferry run --emulate, which keeps PyTorch from doing so"
        )


def _plugin_folder(settings: EmulationSettings, vendor: Vendor) -> Path:
    folder = Path(settings.plugin)
    if not (folder / vendor.plugin / "__init__.py").is_file():
        raise RunError(
            f"{folder}: {vendor.plugin} is not there any more; ferry emulate setup --to {vendor.name} fetches it"
        )
    return folder


def _import(vendor: Vendor, folder: Path, variables: Mapping[str, str]) -> None:
    try:
        import_plugin(vendor.plugin, folder, variables)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == vendor.plugin:
            raise
        raise RunError(
            f"{vendor.plugin} needs the package {error.name}, which is not installed here: pip install {error.name}"
        ) from None
    except ImportError as error:
        raise RunError(f"{vendor.plugin} can't be loaded on the emulated device: {error}") from error
