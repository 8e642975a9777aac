"""Runs every check of a machine with a vendor's device, real or emulated, and finds out whose device that may be."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.building.toolchain import find_torch
from torchferry.emulate import build, plugins
from torchferry.emulate.plugins import Plugin
from torchferry.errors import BuildError
from torchferry.examination.device import checks
from torchferry.examination.device.checks import trial
from torchferry.examination.device.station import TRIAL, TRIAL_SECONDS, CommandOutput, Station, run_command
from torchferry.examination.host.machine import Machine
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.report.checks import CheckResult, Command, Examination, Reach, Status, run_checks, severity
from torchferry.text import Text
from torchferry.vendors.machine import load_machine
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

# What comes first is the cause of what follows: whoever has no driver need not look at libraries yet.
_CAUSES = (
    "driver",
    "nodes",
    "smi",
    "toolkit",
    "python",
    "torch",
    "plugin",
    "abi",
    "environment",
    "libraries",
    "trial",
)


@dataclass(frozen=True)
class DeviceExamination(Examination):
    """What all checks say of a machine with a vendor's device."""

    vendor: Vendor

    @property
    def is_ready(self) -> bool:
        """Whether nothing is in the way."""
        return not self.of(Status.BLOCKS)


def examine_device(station: Station) -> DeviceExamination:
    """All checks in turn."""
    return DeviceExamination(tuple(sorted(run_checks(checks, station), key=_importance)), station.vendor)


def _importance(result: CheckResult) -> tuple[int, int]:
    rank = _CAUSES.index(result.id) if result.id in _CAUSES else len(_CAUSES)
    return severity(result), rank


def vendors_with_traces(machine: Machine, vendor_path: Sequence[Path]) -> list[Vendor]:
    """Vendors of whom something is here: a plugin, a toolkit, or device files."""
    vendors = [get_vendor(name, vendor_path) for name in vendor_names(vendor_path)]
    return [vendor for vendor in vendors if _has_traces(machine, vendor)]


def _has_traces(machine: Machine, vendor: Vendor) -> bool:
    table = load_machine(Path(vendor.folder))
    if vendor.plugin and table.plugin.package and machine.version(table.plugin.package):
        return True
    if any(map(os.path.isdir, _found(machine, table.toolkit.folders))):
        return True
    # render nodes are those of any graphics card: where the device is in tree, they prove nothing
    return bool(vendor.plugin) and bool(_found(machine, table.devices.nodes))


def _found(machine: Machine, patterns: Sequence[str]) -> list[Path]:
    return [path for pattern in patterns for path in machine.paths(machine.in_home(pattern).lstrip("/"))]


_DEVICES = 2  # that the trial computes on
_PLUGIN, _LIBRARIES = "plugin", "libraries"
_FITS = Text("made for torch {torch}, kept in {folder}", "为 torch {torch} 制作，位于 {folder}")
_NONE = Text("none that fits torch {torch}", "没有适合 torch {torch} 的插件")
_FETCH = Text("it is fetched once, into a folder of its own", "只需获取一次，存放于单独的目录")
_BUILT = Text("built", "已构建")
_BUILT_WHY = Text("kept in {folder}", "位于 {folder}")
_NOT_BUILT = Text("not built", "尚未构建")
_NOT_BUILT_WHY = Text("the first run would build them, which takes minutes", "首次运行时会构建，需要几分钟")


def version_set_up(vendor: Vendor) -> str | None:
    """The version of the plugin that is set up; None if programs could not run on the emulated device at once."""
    if not build.is_set_up(vendor):
        return None
    plugin = plugins.found(vendor)
    return plugin.version if plugin is not None else None


def examine_emulated(
    vendor: Vendor, station: Station, vendor_paths: Sequence[Path], with_trial: bool
) -> DeviceExamination:
    """What programs need to run on the emulated device."""
    plugins.refuse_without_emulation(vendor)
    try:
        torch = plugins.release_of(find_torch().version)
    except BuildError as error:
        said = Text(str(error), str(error))
        return DeviceExamination((CheckResult("torch", "torch", Status.BLOCKS, said, said),), vendor)
    return DeviceExamination(tuple(_results(vendor, torch, station, vendor_paths, with_trial)), vendor)


def _results(
    vendor: Vendor, torch: str, station: Station, vendor_paths: Sequence[Path], with_trial: bool
) -> Iterator[CheckResult]:
    set_up = (Command(f"ferry emulate setup --to {vendor.name}", Reach.INSTALL),)
    plugin = plugins.found(vendor)
    if plugin is None:
        yield CheckResult(_PLUGIN, vendor.plugin, Status.BLOCKS, _NONE.format(torch=torch), _FETCH, set_up)
        return
    version = Text(plugin.version, plugin.version)
    yield CheckResult(
        _PLUGIN, vendor.plugin, Status.FINE, version, _FITS.format(torch=torch, folder=plugin.folder)
    )
    folder = build.built_folder(vendor, plugin.folder)
    if folder is None:
        yield CheckResult(_LIBRARIES, _LIBRARIES, Status.BLOCKS, _NOT_BUILT, _NOT_BUILT_WHY, set_up)
        return
    yield CheckResult(_LIBRARIES, _LIBRARIES, Status.FINE, _BUILT, _BUILT_WHY.format(folder=folder))
    if with_trial:
        yield from trial.check(replace(station, trial=_trial(vendor, plugin, vendor_paths)))


def _trial(
    vendor: Vendor, plugin: Plugin, vendor_paths: Sequence[Path]
) -> Callable[[], CommandOutput | None]:
    paths = tuple(str(path.resolve()) for path in vendor_paths)
    place = Place(DeviceKind.EMULATED, vendor, paths, _DEVICES, converted=True)
    environment = environment_at(place)
    program = [sys.executable, "-c", TRIAL, vendor.plugin, vendor.device_type]
    return lambda: run_command(program, environment, TRIAL_SECONDS)
