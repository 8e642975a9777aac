"""Whether the vendor's plugin is installed, and made for the PyTorch beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.examination.device.versions import (
    advised,
    base,
    begins,
    is_newer_than_known,
    minor,
    release_of,
)
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text
from torchferry.vendors.machine import Release

ID = "plugin"
_ABSENT = Text("not installed", "未安装")
_NEEDED = Text("it adds the device to PyTorch", "它为 PyTorch 提供该设备")
_GET = Text("; get it: {get}", "；获取：{get}")
_WITH = Text("for {row} the vendor's table lists {plugin}", "厂商配套表中与 {row} 对应的是 {plugin}")
_MADE_FOR = Text(
    "built for torch {wanted}, but torch {found} is installed: importing it fails, or calls do",
    "对应 torch {wanted}，而安装的是 torch {found}：导入或调用会失败",
)
_PATCH = Text(
    "built for torch {wanted}, but torch {found} is installed: this usually works, but the vendor "
    "tests only {wanted}",
    "对应 torch {wanted}，而安装的是 torch {found}：通常可用，但厂商只测试 {wanted}",
)
_NEWER = Text(
    "newer than the known versions; its version number matches this torch",
    "比已知的版本更新；从版本号看适用于当前 torch",
)
_MATCHES = Text("built for torch {wanted}", "对应 torch {wanted}")
_UNKNOWN = Text(
    "not listed in any known version table; its version number matches this torch",
    "已知的配套表中没有它；从版本号看适用于当前 torch",
)
_NO_TABLE = Text("the torch it is built for is unknown", "它对应哪个 torch 未知")


def check(station: Station) -> Iterator[CheckResult]:
    """One result; none where PyTorch has the device in tree."""
    if not station.vendor.plugin or not station.table.plugin.package:
        return
    name, version = station.table.plugin.package, station.plugin
    if version is None:
        yield _absent(station, name)
        return
    found = Text(version, version)
    row = release_of(station.table, version)
    # Without a row the plugin's own version may name the release of torch.
    pattern = station.table.plugin.torch
    named = re.search(pattern, version) if pattern else None
    wanted = row.torch if row else named[1] if named else ""
    if not wanted:
        yield CheckResult(ID, name, Status.INFO, found, _NO_TABLE)
    elif station.torch is not None and not begins(base(station.torch), wanted):
        is_near = minor(station.torch) == minor(wanted)
        why = (_PATCH if is_near else _MADE_FOR).format(wanted=wanted, found=station.torch)
        status = Status.DOUBT if is_near else Status.BLOCKS
        yield CheckResult(ID, name, status, found, why, _commands(station, _remedy(station) or row))
    elif row is None:
        is_newer = is_newer_than_known(station.table, version)
        yield CheckResult(ID, name, Status.INFO, found, _NEWER if is_newer else _UNKNOWN)
    else:
        yield CheckResult(ID, name, Status.FINE, found, _MATCHES.format(wanted=wanted))


def _remedy(station: Station) -> Release | None:
    return advised(
        station.table, station.torch, station.toolkit, station.python, station.machine.architecture
    )


def _absent(station: Station, name: str) -> CheckResult:
    row = _remedy(station)
    why = _NEEDED
    if not station.table.plugin.get:
        get = _GET.format(get=station.table.get)
        why = Text(why.en + get.en, why.zh + get.zh)
    if row is not None:
        toolkit = f"{station.table.toolkit.name} {' / '.join(row.toolkit)}" if row.toolkit else ""
        told = _WITH.format(row=", ".join(filter(None, (f"torch {row.torch}", toolkit))), plugin=row.plugin)
        why = Text(f"{why.en}; {told.en}", f"{why.zh}；{told.zh}")
    return CheckResult(ID, name, Status.BLOCKS, _ABSENT, why, _commands(station, row))


def _commands(station: Station, row: Release | None) -> tuple[Command, ...]:
    get = station.table.plugin.get
    if not get or row is None:
        return ()
    return (Command(get.format(plugin=row.plugin, torch=row.torch), Reach.INSTALL),)
