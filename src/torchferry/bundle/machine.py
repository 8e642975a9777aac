"""The versions of a machine, and what the doctor says of it, as strangers may read them. Imports no torch."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchferry import __version__
from torchferry.bundle.model import BundleRequest
from torchferry.examination.examine import MachineReport, examine_machine
from torchferry.examination.host.machine import Machine, this_machine
from torchferry.examination.report import REPORTS, for_strangers
from torchferry.report.anonymous import ALL_KINDS, Anonymiser, PrivateFacts, facts_of
from torchferry.report.formats import Options
from torchferry.vendors.machine import load_machine

_NAME = re.compile(r'(?m)^PRETTY_NAME="?([^"\n]*)')
_FOUR_NUMBERS = re.compile(r"\d+(?:\.\d+){3}")


@dataclass(frozen=True)
class ExaminedMachine:
    """This machine, and what is private about it."""

    report: MachineReport
    versions: Mapping[str, str]
    facts: PrivateFacts


def examined(request: BundleRequest) -> ExaminedMachine:
    """Look at this machine for the request's vendor."""
    machine = this_machine(1)
    vendor = request.vendor
    report = examine_machine(machine, vendor.name, request.vendor_path, emulated=request.emulate)
    versions = {**_systems(machine), **{name: value or "-" for name, value in report.versions.items()}}
    toolkit = load_machine(Path(vendor.folder)).toolkit
    facts = replace(
        facts_of(machine.environment, platform.node(), _user()),
        words=tuple(filter(None, request.hidden)),
        public_folders=_public_folders(toolkit.folders),
        public_variables=tuple(vendor.env),
        versions=tuple(found for value in versions.values() for found in _FOUR_NUMBERS.findall(value)),
    )
    return ExaminedMachine(report, versions, facts)


def _public_folders(toolkits: Iterable[str]) -> tuple[str, ...]:
    """Where everybody has a toolkit; what is beside it in a home is not public."""
    return tuple(sorted({each if each.startswith("~") else os.path.dirname(each) for each in toolkits}))


def _systems(machine: Machine) -> dict[str, str]:
    name = _NAME.search(machine.read("etc/os-release") or "")
    return {
        "torchferry": __version__,
        "system": name[1] if name else platform.system(),
        "kernel": platform.release(),
    }


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""


def page_for_strangers(machine: ExaminedMachine, anonymiser: Anonymiser, request: BundleRequest) -> bytes:
    """What the doctor says, without what is fine."""
    shown = for_strangers(machine.report, os.environ, "", ALL_KINDS, anonymiser)
    return REPORTS.render(shown, "md", Options(request.language))
