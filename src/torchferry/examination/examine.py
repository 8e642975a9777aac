"""Runs every check of a machine: of its host, the vendor's variables, and the vendor's device, real or emulated."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from torchferry.building.toolchain import find_torch
from torchferry.emulate import build, plugins
from torchferry.errors import BuildError
from torchferry.examination.device import checks as device_checks
from torchferry.examination.device.checks import trial as trial_check
from torchferry.examination.device.station import (
    TRIAL,
    TRIAL_SECONDS,
    Station,
    run_command,
    this_station,
)
from torchferry.examination.host import checks as host_checks
from torchferry.examination.host.machine import Machine
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.report.checks import (
    CheckResult,
    Command,
    Examination,
    Reach,
    Status,
    run_checks,
    severity,
    worst_first,
)
from torchferry.text import Text
from torchferry.vendors.host import Tuning, load_host
from torchferry.vendors.machine import load_machine
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

# The vendor's variables: what is set, what each does, and what is recommended, by the vendor's data.

VARIABLE = "variable"
OPTION = "option"

_UNSET = Text("not set", "未设置")
_UNSET_DEFAULT = Text("not set, so {default}", "未设置，即 {default}")
_UNSET_UNKNOWN = Text("not set; its default is unknown", "未设置；默认值未知")
_OPTION = Text("set inside a program", "在程序中设置")
_OPTION_DEFAULT = Text("set inside a program, {default} by default", "在程序中设置，默认 {default}")
_COST = Text("; {cost}", "；{cost}")
_RECOMMENDED = Text("; recommended: {value}", "；建议：{value}")
_NOT_JUDGED = Text("; its effect on speed is unknown", "；对速度的影响未知")


def check_variables(
    vendor: Vendor, tuning: tuple[Tuning, ...], environment: Mapping[str, str]
) -> Iterator[CheckResult]:
    """A result for each variable and option that the data know, and for each other one of the vendor's that is set."""
    for entry in tuning:
        if entry.option:
            found = _OPTION_DEFAULT.format(default=entry.default) if entry.default else _OPTION
            why = _joined(_why(entry), Text(f": {entry.option}", f"：{entry.option}"))
            yield CheckResult(OPTION, entry.name, Status.UNSEEN, found, why, (), entry.source)
        else:
            yield _variable(entry, environment.get(entry.name))
    known = {entry.name for entry in tuning if not entry.option}
    for name, meaning in vendor.env.items():
        if name in environment and name not in known:
            value = environment[name]
            why = Text(meaning, meaning)
            yield CheckResult(VARIABLE, name, Status.INFO, Text(value, value), _joined(why, _NOT_JUDGED))


def _variable(entry: Tuning, value: str | None) -> CheckResult:
    status = _judged(entry, entry.default if value is None else value)
    commands: tuple[Command, ...] = ()
    if status in (Status.COSTS, Status.COULD):
        if entry.recommended:
            line = f"export {entry.name}={shlex.quote(entry.recommended)}"
            commands = (Command(line, Reach.SHELL),)
        elif value is not None:
            commands = (Command(f"unset {entry.name}", Reach.SHELL),)
    if value is not None:
        found = Text(value, value)
    elif entry.default is None:
        found = _UNSET_UNKNOWN
    else:
        found = _UNSET_DEFAULT.format(default=entry.default) if entry.default else _UNSET
    return CheckResult(VARIABLE, entry.name, status, found, _why(entry), commands, entry.source)


def _judged(entry: Tuning, effective: str | None) -> Status:
    """By the patterns of the data; without any, or without a value to hold against them, it is a fact and no more."""
    if effective is None or not (entry.slow or entry.improvable):
        return Status.INFO
    if entry.slow and re.fullmatch(entry.slow, effective):
        return Status.COSTS
    if entry.improvable and re.fullmatch(entry.improvable, effective):
        return Status.COULD
    return Status.FINE


def _why(entry: Tuning) -> Text:
    parts = [entry.what]
    parts += [_COST.format(cost=entry.cost)] if entry.cost.en else []
    parts += [_RECOMMENDED.format(value=entry.recommended)] if entry.recommended else []
    return _joined(*parts)


def _joined(*parts: Text) -> Text:
    return Text("".join(part.en for part in parts), "".join(part.zh for part in parts))


@dataclass(frozen=True)
class HostExamination(Examination):
    """What all checks say of the host."""

    vendor: str = ""  # whose variables were looked at; "": nobody's
    is_guess: bool = False  # the vendor was not named: its plugin is the only one that is installed


def examine_host(machine: Machine, vendor: Vendor | None, *, is_guess: bool = False) -> HostExamination:
    """Run all checks of a host."""
    results = list(run_checks(host_checks, machine))
    if vendor is not None:
        results += check_variables(vendor, load_host(Path(vendor.folder)).tuning, machine.environment)
    return HostExamination(worst_first(results), vendor.name if vendor else "", is_guess)


def installed_vendor(vendor_path: Sequence[Path]) -> Vendor | None:
    """The vendor whose plugin is installed, if there is exactly one."""
    from importlib.util import find_spec

    vendors = [get_vendor(name, vendor_path) for name in vendor_names(vendor_path)]
    found = [vendor for vendor in vendors if vendor.plugin and find_spec(vendor.plugin.split(".")[0])]
    return found[0] if len(found) == 1 else None


# A machine with a vendor's device.

# What comes first is the cause of what follows: whoever has no driver need not look at libraries yet.
_CAUSES = (
    "driver", "nodes", "smi", "toolkit", "python", "torch", "plugin", "abi", "environment", "libraries", "trial",
)  # fmt: skip


@dataclass(frozen=True)
class DeviceExamination(Examination):
    """What all checks say of a machine with a vendor's device."""

    vendor: Vendor

    @property
    def is_ready(self) -> bool:
        """Whether nothing is in the way."""
        return not self.of(Status.BLOCKS)


def examine_device(station: Station) -> DeviceExamination:
    """Run all checks of a machine with a vendor's device."""

    def importance(result: CheckResult) -> tuple[int, int]:
        rank = _CAUSES.index(result.id) if result.id in _CAUSES else len(_CAUSES)
        return severity(result), rank

    results = sorted(run_checks(device_checks, station), key=importance)
    return DeviceExamination(tuple(results), station.vendor)


def vendors_with_traces(machine: Machine, vendor_path: Sequence[Path]) -> list[Vendor]:
    """Vendors of whom something is here: a plugin, a toolkit, or device files."""
    vendors = [get_vendor(name, vendor_path) for name in vendor_names(vendor_path)]
    return [vendor for vendor in vendors if _has_traces(machine, vendor)]


def _has_traces(machine: Machine, vendor: Vendor) -> bool:
    table = load_machine(Path(vendor.folder))
    if vendor.plugin and table.plugin.package and machine.version(table.plugin.package):
        return True
    if any(map(os.path.isdir, machine.files(table.toolkit.folders))):
        return True
    # render nodes are those of any graphics card: where the device is in tree, they prove nothing
    return bool(vendor.plugin) and bool(machine.files(table.devices.nodes))


_DEVICES = 2  # that the trial computes on
_PLUGIN, _LIBRARIES = "plugin", "libraries"
_FITS = Text("built for torch {torch}, kept in {folder}", "对应 torch {torch}，位于 {folder}")
_NONE = Text("none for torch {torch}", "没有适合 torch {torch} 的插件")
_FETCH = Text("downloaded once, into a separate folder", "只需下载一次，存放于单独的文件夹")
_BUILT = Text("built", "已构建")
_BUILT_WHY = Text("kept in {folder}", "位于 {folder}")
_NOT_BUILT = Text("not built", "尚未构建")
_NOT_BUILT_WHY = Text("the first run builds them, which takes minutes", "首次运行时会构建，需要几分钟")


def examine_emulated(
    vendor: Vendor, station: Station, vendor_paths: Sequence[Path], with_trial: bool
) -> DeviceExamination:
    """What programs need to run on the emulated device."""
    plugins.refuse_without_emulation(vendor)
    try:
        torch = plugins.release_of(find_torch().version)
    except BuildError as error:
        said = error.text
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
        paths = tuple(str(path.resolve()) for path in vendor_paths)
        environment = environment_at(Place(DeviceKind.EMULATED, vendor, paths, _DEVICES, converted=True))
        program = [sys.executable, "-c", TRIAL, vendor.plugin, vendor.device_type]
        trial = partial(run_command, program, environment, TRIAL_SECONDS)
        yield from trial_check.check(replace(station, trial=trial))


# The whole of a machine: its device, if a vendor is known, and the host.


@dataclass(frozen=True)
class MachineReport:
    """What is said of a machine: of its device, if a vendor is known, and of the host."""

    device: DeviceExamination | None
    host: HostExamination
    others: tuple[str, ...] = ()  # vendors of whom something is here when none was chosen
    versions: Mapping[str, str | None] = field(default_factory=dict)
    is_known: bool = True  # what a machine needs for this vendor
    with_whole_host: bool = False  # also what costs nothing

    @property
    def is_ready(self) -> bool:
        return self.device is not None and self.is_known and self.device.is_ready

    @property
    def results(self) -> tuple[CheckResult, ...]:
        """All of them, those of the device first."""
        return (*(self.device.results if self.device else ()), *self.host.results)


def examine_machine(
    machine: Machine,
    to: str | None,
    vendor_path: Sequence[Path] = (),
    *,
    trial: bool = False,
    emulated: bool = False,
    everything: bool = False,
) -> MachineReport:
    """Examine the machine for this vendor, or for the only one of whom something is installed.

    `trial` starts a process that computes on each device; `emulated` looks at what the emulated device needs instead;
    `everything` keeps what costs nothing in the host's part of the report.
    """
    found = [] if to else vendors_with_traces(machine, vendor_path)
    vendor = get_vendor(to, vendor_path) if to else found[0] if len(found) == 1 else None
    host = examine_host(machine, vendor, is_guess=not to)
    others = tuple(each.name for each in found)
    if vendor is None:
        return MachineReport(None, host, others, with_whole_host=everything)
    table = load_machine(Path(vendor.folder))
    station = this_station(machine, vendor, table, with_trial=trial)
    device = examine_emulated(vendor, station, vendor_path, trial) if emulated else examine_device(station)
    versions = {
        "python": station.python,
        "architecture": station.machine.architecture,
        "torch": station.torch,
        "plugin": station.plugin,
        "toolkit": station.toolkit,
        "driver": station.driver,
    }
    return MachineReport(device, host, others, versions, table.is_known, everything)
