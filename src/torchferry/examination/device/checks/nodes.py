"""Whether the device files are there, and for this user."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "nodes"
_NONE = Text("none found; searched for {patterns}", "没有；查找了 {patterns}")
_NONE_WHY = Text(
    "the driver creates them when it finds a card; check `dmesg` and `lspci`; start containers with "
    "--device for each of them",
    "驱动发现卡后会创建它们；请查看 `dmesg` 与 `lspci`；启动容器时须用 --device 逐个映射",
)
_MISSING = Text("missing: {names}", "缺少：{names}")
_MISSING_WHY = Text(
    "programs need them in addition to the devices; in a container, map them with --device",
    "程序除设备外还需要它们；容器中请用 --device 映射",
)
_CLOSED = Text("{name} belongs to group {group}, mode {mode:o}", "{name} 属于组 {group}，权限 {mode:o}")
_CLOSED_WHY = Text(
    "this user may not read and write it; join the group, then log in again",
    "当前用户无权读写；请加入该组并重新登录",
)
_FOUND = Text("{files} files, that is {devices} devices", "{files} 个文件，即 {devices} 个设备")
_FINE = Text("this user may use them", "当前用户可以使用")


def check(station: Station) -> Iterator[CheckResult]:
    """A result for the devices, one for the files beside them."""
    facts = station.table.devices
    if not facts.nodes:
        return
    if not station.nodes:
        found = _NONE.format(patterns=", ".join(facts.nodes))
        yield CheckResult(ID, "devices", Status.BLOCKS, found, _NONE_WHY)
        return
    closed = next((path for path in station.nodes if not station.access(path).allowed), None)
    if closed is not None:
        yield _closed(station, closed, "devices")
    else:
        count = len(station.nodes)
        found = _FOUND.format(files=count, devices=count * facts.each)
        yield CheckResult(ID, "devices", Status.FINE, found, _FINE)
    yield from _control(station)


def _closed(station: Station, path: Path, subject: str) -> CheckResult:
    access = station.access(path)
    found = _CLOSED.format(name=station.shown(path), group=access.group, mode=access.mode)
    commands: tuple[Command, ...] = ()
    if access.mode & 0o060 == 0o060 and access.group != "root":
        commands = (Command(f'usermod -aG {shlex.quote(access.group)} "$USER"', Reach.ROOT),)
    return CheckResult(ID, subject, Status.BLOCKS, found, _CLOSED_WHY, commands)


def _control(station: Station) -> Iterator[CheckResult]:
    wanted = station.table.devices.control
    missing = [name for name in wanted if not os.path.lexists(station.path(name))]
    closed = next((path for path in map(station.path, wanted) if not station.access(path).allowed), None)
    if missing:
        found = _MISSING.format(names=", ".join(missing))
        yield CheckResult(ID, "control files", Status.BLOCKS, found, _MISSING_WHY)
    elif closed is not None:
        yield _closed(station, closed, "control files")
    elif wanted:
        listed = ", ".join(wanted)
        yield CheckResult(ID, "control files", Status.FINE, Text(listed, listed), _FINE)
