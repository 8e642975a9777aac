"""What the vendor's own command says of its devices."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

from torchferry.examination.device.station import SMI_SECONDS, CommandOutput, Station, library_path
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.report.safe import shortened
from torchferry.text import Text

ID = "smi"
_ABSENT = Text("no such command", "没有该命令")
_ABSENT_WHY = Text(
    "it comes with the driver; in a container, mount it from the host",
    "随驱动提供；容器中请从主机挂载",
)
_SLOW = Text("no response within {seconds} s", "{seconds} 秒内没有响应")
_SLOW_WHY = Text("a device or the driver hangs; check `dmesg`", "设备或驱动无响应；请查看 `dmesg`")
_FAILED = Text("it failed with exit code {code}: {line}", "退出码 {code}：{line}")
_FAILED_WHY = Text(
    "if the vendor's own command fails, no program can use the device", "厂商命令失败时程序也无法使用设备"
)
_UNLOADED = "error while loading shared libraries"
_UNLOADED_WHY = Text(
    "the driver's libraries are not found; in a container, mount the host's driver folder, and add "
    "its folders to LD_LIBRARY_PATH",
    "找不到驱动的库；容器中请挂载主机的驱动文件夹，并将其加入 LD_LIBRARY_PATH",
)
_LONGEST_LINE = 200
_NONE = Text("it lists no device", "没有列出设备")
_UNREAD = Text("it responds; the format of its list is unknown", "有响应；其列表格式未知")
_SICK = Text("not healthy: {devices}", "状态异常：{devices}")
_SICK_WHY = Text(
    "the vendor's command reports problems with these devices; reset them, or exclude them with {variable}",
    "厂商命令对这些设备报警；请复位，或用 {variable} 排除",
)
_FINE = Text("they respond", "设备有响应")


def check(station: Station) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    name = " ".join(station.smi_command)
    if not name:
        return
    output = station.smi
    if output is None:
        yield CheckResult(ID, name, Status.INFO, _ABSENT, _ABSENT_WHY)
    elif output.code is None:
        yield CheckResult(ID, name, Status.BLOCKS, _SLOW.format(seconds=SMI_SECONDS), _SLOW_WHY)
    elif output.code:
        yield _failed(station, name, output)
    else:
        yield _of_list(station, name, output.text)


def _failed(station: Station, name: str, output: CommandOutput) -> CheckResult:
    line = next((line for line in output.text.splitlines() if line.strip()), "")
    found = _FAILED.format(code=output.code, line=shortened(line.strip(), _LONGEST_LINE))
    if _UNLOADED not in output.text:
        return CheckResult(ID, name, Status.BLOCKS, found, _FAILED_WHY)
    folders = [folder for folder in station.table.driver.libraries if os.path.isdir(station.path(folder))]
    commands = (Command(library_path(folders), Reach.SHELL),) if folders else ()
    return CheckResult(ID, name, Status.BLOCKS, found, _UNLOADED_WHY, commands)


def _of_list(station: Station, name: str, text: str) -> CheckResult:
    facts = station.table.smi
    if not facts.device:
        return CheckResult(ID, name, Status.INFO, _UNREAD, _FINE)
    devices = [match.groupdict() for match in re.finditer(facts.device, text)]
    if not devices:
        return CheckResult(ID, name, Status.DOUBT, _NONE, _FAILED_WHY)
    sick = [
        f"{device.get('index', '?')} {device['name']} ({device['health']})"
        for device in devices
        if facts.healthy and device.get("health") and device["health"] not in facts.healthy
    ]
    if sick:
        why = _SICK_WHY.format(variable=station.vendor.visible_devices_env)
        return CheckResult(ID, name, Status.DOUBT, _SICK.format(devices=", ".join(sick)), why)
    counted = Counter(device["name"] for device in devices)
    listed = ", ".join(f"{count} x {model}" for model, count in counted.items())
    return CheckResult(ID, name, Status.FINE, Text(listed, listed), _FINE)
