"""The whole of a machine: its device, if a vendor is known, and the host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchferry.examination.device.examine import examine_device, examine_emulated, vendors_with_traces
from torchferry.examination.device.station import Station, this_station
from torchferry.examination.host.examine import examine
from torchferry.examination.host.machine import Machine
from torchferry.examination.report import MachineReport
from torchferry.vendors.machine import load_machine
from torchferry.vendors.registry import get_vendor


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
    host = examine(machine, vendor, is_guess=not to)
    others = tuple(each.name for each in found)
    if vendor is None:
        return MachineReport(None, host, others, with_whole_host=everything)
    table = load_machine(Path(vendor.folder))
    station = this_station(machine, vendor, table, with_trial=trial)
    device = examine_emulated(vendor, station, vendor_path, trial) if emulated else examine_device(station)
    return MachineReport(device, host, others, _versions(station), table.is_known, everything)


def _versions(station: Station) -> dict[str, str | None]:
    return {
        "python": station.python,
        "architecture": station.machine.architecture,
        "torch": station.torch,
        "plugin": station.plugin,
        "toolkit": station.toolkit,
        "driver": station.driver,
    }
