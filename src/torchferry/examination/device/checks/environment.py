"""Whether the toolkit's variables are set in this shell, name folders that exist, and devices that are there."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "environment"
_UNSET = Text("not set", "未设置")
_SCRIPT = Text(
    "set by the toolkit's script, which was not sourced in this shell",
    "由工具包脚本设置，而当前 shell 没有执行该脚本",
)
_EMPTY = Text("set, but empty", "已设置但为空")
_BY_HAND = Text("the plugin looks for the toolkit in it", "插件据此查找工具包")
_NO_FOLDER = Text("{value}: no such folder", "{value}：没有该文件夹")
_WRONG = Text("it must name the toolkit's folder", "它必须指向工具包文件夹")
_FINE = Text("names an existing folder", "指向已有文件夹")
_TOO_MANY = Text(
    "there are {count} devices, numbered from 0: programs see none, or too few of them",
    "共有 {count} 个设备，从 0 编号：程序看不到设备，或看到的数量不足",
)
_NO_LIST = Text(
    "it must be a list of numbers such as 0,1; otherwise programs see no device, or fail",
    "必须是 0,1 这样的数字列表；否则程序看不到设备或失败",
)
_VISIBLE = Text("programs see only these devices", "程序只能看到这些设备")


def check(station: Station) -> Iterator[CheckResult]:
    """A result for each variable that is needed, and for the list of visible devices if it is set."""
    facts = station.table.toolkit
    folder, script = station.toolkit_folder, ""
    if folder is not None:
        # `..` of a link is not the folder in which the link lies
        files = [
            folder.parent / name[3:] if name.startswith("../") else folder / name for name in facts.scripts
        ]
        script = next((station.shown(file) for file in files if os.path.isfile(file)), "")
    for name in dict.fromkeys((*facts.sets, *facts.variables)):
        value = station.machine.environment.get(name)
        if value is None and name not in facts.sets:
            continue
        if value is None:
            # without the toolkit its script is missing as well, and that is said already
            status = Status.BLOCKS if station.toolkit_folder else Status.INFO
            why = _SCRIPT if script else _BY_HAND
            yield CheckResult(ID, name, status, _UNSET, why, _commands(station, name, script))
        elif not os.path.isdir(station.path(value)):
            yield CheckResult(ID, name, Status.BLOCKS, _NO_FOLDER.format(value=value), _WRONG)
        else:
            yield CheckResult(ID, name, Status.FINE, Text(value, value), _FINE)
    yield from _visible_devices(station)


def _commands(station: Station, name: str, script: str) -> tuple[Command, ...]:
    if script:
        return (Command(f"source {shlex.quote(script)}", Reach.SHELL),)
    if station.toolkit_folder is not None and name in station.table.toolkit.variables:
        folder = shlex.quote(station.shown(station.toolkit_folder))
        return (Command(f"export {name}={folder}", Reach.SHELL),)
    return ()


def _visible_devices(station: Station) -> Iterator[CheckResult]:
    name = station.vendor.visible_devices_env
    value = station.machine.environment.get(name) if name else None
    if value is None:
        return
    count = len(station.nodes) * station.table.devices.each
    found = Text(value, value) if value else _EMPTY
    asked = [re.fullmatch(r"\s*(\d{1,6})(\.\d+)?\s*", part, re.ASCII) for part in value.split(",")]
    numbers = [int(part[1]) for part in asked if part]
    unset = (Command(f"unset {name}", Reach.SHELL),)
    if len(numbers) < len(asked):
        yield CheckResult(ID, name, Status.DOUBT, found, _NO_LIST, unset)
    elif count and max(numbers) >= count:
        yield CheckResult(ID, name, Status.BLOCKS, found, _TOO_MANY.format(count=count), unset)
    else:
        yield CheckResult(ID, name, Status.INFO, Text(value, value), _VISIBLE)
