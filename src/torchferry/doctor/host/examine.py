"""Runs every check: of the machine, and of the vendor's variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.doctor.finding import run_checks
from torchferry.doctor.host import checks
from torchferry.doctor.host.machine import Machine
from torchferry.doctor.host.variables import check_variables
from torchferry.doctor.model import Result, Status
from torchferry.vendors.host import load_host
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

_ORDER = list(Status)


@dataclass(frozen=True)
class Examination:
    """What all checks say, the worst first."""

    results: tuple[Result, ...]
    vendor: str = ""  # whose variables were looked at; "": nobody's
    is_guess: bool = False  # the vendor was not named: its plugin is the only one that is installed

    def count(self, status: Status) -> int:
        """How many results have this status."""
        return sum(result.status is status for result in self.results)


def examine(machine: Machine, vendor: Vendor | None, *, is_guess: bool = False) -> Examination:
    """All checks in turn."""
    results = run_checks(checks, machine)
    if vendor is not None:
        results += check_variables(vendor, load_host(Path(vendor.folder)).tuning, machine.environment)
    ordered = sorted(results, key=lambda result: _ORDER.index(result.status))
    return Examination(tuple(ordered), vendor.name if vendor else "", is_guess)


def installed_vendor(vendor_path: Sequence[Path]) -> Vendor | None:
    """The vendor whose plugin is installed, if there is exactly one."""
    from importlib.util import find_spec

    vendors = [get_vendor(name, vendor_path) for name in vendor_names(vendor_path)]
    found = [vendor for vendor in vendors if vendor.plugin and find_spec(vendor.plugin.split(".")[0])]
    return found[0] if len(found) == 1 else None
