"""Which processes hold the devices: one that was left behind keeps its memory, and the next program fails."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "processes"
_NONE = Text("no process that can be seen holds a device", "没有可见的进程占用设备")
_NONE_WHY = Text("nothing was left behind by an earlier run", "没有以前运行遗留的进程")
_FOUND = Text("{listed}", "{listed}")
_WHY = Text(
    "they keep memory of the devices and ports of collectives; if they are left over from a run that failed, end them",
    "它们占用设备显存与通信端口；如果是失败的运行遗留的，请结束它们",
)
_SHOWN = 8


def check(station: Station) -> Iterator[CheckResult]:
    """One result; none where there is no device to hold."""
    if not station.nodes:
        return
    holders = {**_by_files(station), **_by_smi(station)}
    holders.pop(os.getpid(), None)
    if not holders:
        yield CheckResult(ID, "processes", Status.FINE, _NONE, _NONE_WHY)
        return
    listed = ", ".join(f"{pid} {name}".strip() for pid, name in sorted(holders.items())[:_SHOWN])
    more = f", ... ({len(holders)})" if len(holders) > _SHOWN else ""
    command = Command("kill " + " ".join(map(str, sorted(holders))), Reach.PROCESSES)
    yield CheckResult(ID, "processes", Status.DOUBT, _FOUND.format(listed=listed + more), _WHY, (command,))


def _by_files(station: Station) -> dict[int, str]:
    """Process -> command, of those that have a device file open and belong to this user."""
    nodes = {station.shown(path) for path in station.nodes}
    found: dict[int, str] = {}
    for folder in station.machine.paths("proc/[0-9]*/fd"):
        if any(_target(entry) in nodes for entry in _entries(folder)):
            found[int(folder.parent.name)] = _command(station, folder.parent.name)
    return found


def _by_smi(station: Station) -> dict[int, str]:
    pattern = station.table.smi.process
    text = station.smi.text if station.smi is not None else ""
    pids = {match["pid"] for match in re.finditer(pattern, text)} if pattern else set()
    return {int(pid): _command(station, pid) for pid in pids}


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        return list(folder.iterdir())
    return []


def _target(entry: Path) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(entry)
    return ""


def _command(station: Station, pid: str) -> str:
    return (station.machine.read(f"proc/{pid}/comm") or "").strip()
