"""Turns the emulated device on in this process: the libraries, the vendor's plugin, its own migration if that is wanted."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from torchferry.emulate import build, plugins, toolkits
from torchferry.emulate.environment import EmulationSettings
from torchferry.emulate.toolkits import Toolkit, put_on_path
from torchferry.errors import RunError
from torchferry.observe import torchvision_operators
from torchferry.settings import environment_kept
from torchferry.sim import simulated, summary
from torchferry.sim.summary import MISSING, DeviceUse, OperatorCount, SimulatedProcess
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

_ANY = DistributionFinder.Context()


class Libraries:
    """The libraries of an emulated toolkit, loaded so that the plugin finds them by their names."""

    def __init__(self, toolkit: Toolkit, folder: Path) -> None:
        self._toolkit = toolkit
        self._loaded = []
        for part in toolkit.libraries:
            try:
                self._loaded.append(ctypes.CDLL(str(folder / part.name), os.RTLD_GLOBAL | os.RTLD_NOW))
            except OSError as error:
                raise RunError(f"{part.name} of the emulated device can't be loaded: {error}") from None

    def configure(self, devices: int, memory: int, card: str, shared_randomness: bool) -> None:
        """Say which devices there are, before anything else is called."""
        configure = self._function(self._toolkit.configure)
        if configure is None:
            raise RunError(f"the emulated {self._toolkit.name} can't be told its devices; build it anew")
        configure.argtypes = (ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p)
        configure.restype = None
        configure(devices, memory, card.encode())
        share = self._function(self._toolkit.share_randomness)
        if share is not None:
            share.argtypes, share.restype = (ctypes.c_int,), None
            share(int(shared_randomness))

    def uses(self) -> tuple[OperatorCount, ...]:
        """Which functions of operators were called until now, also such as are not there."""
        uses = self._function(self._toolkit.uses)
        if uses is None:
            return ()
        uses.argtypes, uses.restype = (), ctypes.c_char_p
        found: dict[str, Any] = json.loads((uses() or b"{}").decode("utf-8", "replace"))
        # a count, or one with a remark that there is no such function
        told = {name: use if isinstance(use, dict) else {"calls": use} for name, use in found.items()}
        return tuple(
            OperatorCount(name, int(use.get("calls", 0)), MISSING if use.get("missing") else "kernel")
            for name, use in told.items()
        )

    def _function(self, name: str) -> ctypes._NamedFuncPointer | None:
        found = (getattr(library, name, None) for library in self._loaded)
        return next((function for function in found if function is not None), None)


@dataclass(frozen=True)
class ActiveEmulation:
    """What this process emulates."""

    vendor: Vendor
    settings: EmulationSettings
    libraries: Libraries


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
    plugin = Path(settings.plugin)
    if not (plugin / vendor.plugin / "__init__.py").is_file():
        raise RunError(
            f"{plugin}: {vendor.plugin} is not there any more; ferry emulate setup --to {vendor.name} fetches it"
        )
    folder = build.library_folder(vendor, plugin)
    libraries = Libraries(toolkit, folder)
    libraries.configure(settings.devices, settings.memory, settings.card, settings.shared_randomness)
    _active.append(ActiveEmulation(vendor, settings, libraries))
    torchvision_operators.install()
    homes = toolkit.home_folders(folder)
    _import_plugin(vendor, plugin, {variable: str(place) for variable, place in homes.items()})
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


def _import_plugin(vendor: Vendor, folder: Path, variables: Mapping[str, str]) -> None:
    """Import it from its folder with these variables set; the environment is afterwards what it was."""
    if not any(isinstance(finder, PluginFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, PluginFinder(folder))
    try:
        with environment_kept():
            os.environ.update(variables)
            importlib.import_module(vendor.plugin)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == vendor.plugin:
            raise
        raise RunError(
            f"{vendor.plugin} needs the package {error.name}, which is not installed here: pip install {error.name}"
        ) from None
    except ImportError as error:
        raise RunError(f"{vendor.plugin} can't be loaded on the emulated device: {error}") from error


class PluginFinder(DistributionFinder):
    """Finds what lies in one folder, packages and what is said of them, for this process alone.

    The folder does not go on sys.path: multiprocessing hands that on to the processes that it starts, and there PyTorch
    would load the plugin before its toolkit is there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self._own = {entry.name.partition(".")[0] for entry in folder.iterdir()}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A package of the folder; what is inside of one is found by its own path."""
        if path is not None or name not in self._own:
            return None
        return PathFinder.find_spec(name, [self.folder])

    def find_distributions(self, context: DistributionFinder.Context = _ANY) -> Iterable[Distribution]:
        """For those who ask whether, and which, plugin is there."""
        within = DistributionFinder.Context(name=context.name, path=[self.folder])
        return MetadataPathFinder.find_distributions(within)


def report_at_exit(folder: Path) -> None:
    """Leave this process's part of the summary of a run when it ends, by the counters of the vendor's plugin."""
    summary.report_at_exit(folder, collect)


def collect() -> SimulatedProcess | None:
    """What this process has used so far; None if it never touched the device."""
    now = active()
    if now is None:
        return None
    devices = _devices(getattr(torch, now.vendor.device_type), now.settings.memory)
    return summary.used_by_this_process(devices, now.libraries.uses())


def _devices(module: Any, limit: int) -> tuple[DeviceUse, ...]:
    """A process that was forked from one with a device can't ask for it, nor has it used it."""
    is_forked = getattr(module, "_is_in_bad_fork", lambda: False)()
    if is_forked or not module.is_initialized():
        return ()
    stats = map(module.memory_stats, range(module.device_count()))
    uses = [
        DeviceUse(
            index=index,
            peak_allocated=used.get("allocated_bytes.all.peak", 0),
            peak_reserved=used.get("reserved_bytes.all.peak", 0),
            limit=limit,
            allocations=used.get("allocation.all.allocated", 0),
            out_of_memory=used.get("num_ooms", 0),
        )
        for index, used in enumerate(stats)
    ]
    return tuple(use for use in uses if use.allocations or use.out_of_memory)
