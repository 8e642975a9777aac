"""Runs every check of a machine with a vendor's device, and finds out whose device that may be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.doctor.checking import run_checks
from torchferry.doctor.device import checks
from torchferry.doctor.device.station import Station
from torchferry.doctor.host.machine import Machine
from torchferry.doctor.model import Result, Status
from torchferry.vendors.machine import load_machine
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

_ORDER = list(Status)
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
class Readiness:
    """What all checks say, the worst first."""

    vendor: Vendor
    results: tuple[Result, ...]

    @property
    def obstacles(self) -> tuple[Result, ...]:
        """What is in the way."""
        return tuple(result for result in self.results if result.status is Status.BLOCKS)

    @property
    def is_ready(self) -> bool:
        return not self.obstacles

    def count(self, status: Status) -> int:
        """How many results have this status."""
        return sum(result.status is status for result in self.results)


def examine_device(station: Station) -> Readiness:
    """All checks in turn."""
    return Readiness(station.vendor, tuple(sorted(run_checks(checks, station), key=_importance)))


def _importance(result: Result) -> tuple[int, int]:
    rank = _CAUSES.index(result.id) if result.id in _CAUSES else len(_CAUSES)
    return _ORDER.index(result.status), rank


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
