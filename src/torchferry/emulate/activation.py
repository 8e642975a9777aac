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
from torchferry.text import Text
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
                raise RunError(
                    Text(
                        f"{part.name} of the emulated device can't be loaded: {error}",
                        f"无法加载仿真设备的 {part.name}：{error}",
                    )
                ) from None

    def configure(self, devices: int, memory: int, card: str, shared_randomness: bool) -> None:
        """Say which devices there are, before anything else is called."""
        configure = self._function(self._toolkit.configure)
        if configure is None:
            raise RunError(
                Text(
                    f"the emulated {self._toolkit.name} does not accept its devices; build it again",
                    f"无法为仿真的 {self._toolkit.name} 设置设备；请重新构建",
                )
            )
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
                Text(
                    f"this process already emulates {now.vendor.name}; start another one to emulate {vendor.name}",
                    f"当前进程已在仿真 {now.vendor.name}；请另起进程仿真 {vendor.name}",
                )
            )
        return
    plugins.refuse_without_emulation(vendor)
    _refuse_taken_place()
    toolkit = toolkits.load(vendor.emulation.toolkit)
    plugin = Path(settings.plugin)
    if not (plugin / vendor.plugin / "__init__.py").is_file():
        raise RunError(
            Text(
                f"{plugin}: {vendor.plugin} no longer exists; `ferry emulate setup --to {vendor.name}` downloads "
                "it",
                f"{plugin}：{vendor.plugin} 已不存在；`ferry emulate setup --to {vendor.name}` 可下载",
            )
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
            Text(
                f"this process already simulates {there.vendor.name} and can't emulate as well; start another one",
                f"当前进程已在模拟 {there.vendor.name}，不能同时仿真；请另起进程",
            )
        )
    if name != "privateuseone":
        raise RunError(
            Text(
                f"another package already uses PyTorch's slot for extra devices (named `{name}`), probably the "
                "vendor's plugin, loaded automatically; use ferry run --emulate, which prevents that",
                f"PyTorch 的扩展设备位置已被另一个包占用（名为 `{name}`），很可能是自动加载的厂商插件；请使用 "
                "ferry run --emulate，它会阻止自动加载",
            )
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
            Text(
                f"{vendor.plugin} needs the package {error.name}, which is not installed; pip install {error.name}",
                f"{vendor.plugin} 需要的包 {error.name} 未安装；请执行 pip install {error.name}",
            )
        ) from None
    except ImportError as error:
        raise RunError(
            Text(
                f"{vendor.plugin} can't be loaded on the emulated device: {error}",
                f"无法在仿真设备上加载 {vendor.plugin}：{error}",
            )
        ) from error


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
