"""Which processes hold the devices: one that was left behind keeps its memory, and the next program fails."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "processes"
_NONE = Text("no visible process uses a device", "没有可见的进程占用设备")
_NONE_WHY = Text("an earlier run left nothing behind", "没有以前运行遗留的进程")
_WHY = Text(
    "they hold device memory and ports of collectives; if they are left over from a failed run, end them",
    "它们占用设备显存与集合通信端口；如果是失败的运行遗留的，请结束它们",
)
_SHOWN = 8


def check(station: Station) -> Iterator[CheckResult]:
    """One result; none where there is no device to hold."""
    if not station.nodes:
        return
    # The processes that have a device file open and belong to this user.
    nodes = {station.shown(path) for path in station.nodes}
    pids: set[int] = set()
    for folder in station.machine.paths("proc/[0-9]*/fd"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            for entry in folder.iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(entry) in nodes:
                        pids.add(int(folder.parent.name))
    pattern = station.table.smi.process
    if pattern and station.smi is not None:
        pids |= {int(match["pid"]) for match in re.finditer(pattern, station.smi.text)}
    commands = {pid: station.machine.read(f"proc/{pid}/comm") or "" for pid in pids - {os.getpid()}}
    holders = {pid: command.strip() for pid, command in commands.items()}
    if not holders:
        yield CheckResult(ID, "processes", Status.FINE, _NONE, _NONE_WHY)
        return
    listed = ", ".join(f"{pid} {name}".strip() for pid, name in sorted(holders.items())[:_SHOWN])
    more = f", ... ({len(holders)})" if len(holders) > _SHOWN else ""
    command = Command("kill " + " ".join(map(str, sorted(holders))), Reach.PROCESSES)
    found = Text(listed + more, listed + more)
    yield CheckResult(ID, "processes", Status.DOUBT, found, _WHY, (command,))
