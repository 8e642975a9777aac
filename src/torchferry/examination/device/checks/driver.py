"""Whether the driver is there, goes with the toolkit, and with the firmware of the cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.examination.device.versions import VersionFit, driver_row, fit, place
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text

ID = "driver"
_ABSENT = Text("not found: no device file, no version", "未找到：没有设备文件，也没有版本信息")
_NEEDED = Text(
    "no device can be used without it; get it: {get}; a container uses the host's driver",
    "没有它无法使用设备；获取：{get}；容器使用主机的驱动",
)
_SOME = Text("device files exist, but no version was found", "有设备文件，但没有版本信息")
_HOST = Text(
    "in a container, mount the host's driver folder to see its version",
    "容器中请挂载主机的驱动文件夹以查看版本",
)
_NOT_KNOWN = Text(
    "installed; the driver version that {toolkit} needs is unknown",
    "已安装；{toolkit} 需要哪个版本的驱动未知",
)
_WORDS = {
    VersionFit.FITS: Text("compatible with {toolkit}", "与 {toolkit} 配套"),
    VersionFit.OLDER: Text(
        "{toolkit} needs {wanted}: with an older driver, devices can't be opened or calls fail; get it: "
        "{get}",
        "{toolkit} 需要 {wanted}：驱动过旧会打不开设备或调用失败；获取：{get}",
    ),
    VersionFit.BELOW: Text(
        "{wanted} is known to work with {toolkit}; nothing is known about older drivers: if devices "
        "can't be opened, update the driver",
        "已知与 {toolkit} 配套的是 {wanted}；更旧的驱动情况未知：如打不开设备，请升级",
    ),
    VersionFit.NEWER: Text(
        "newer than the drivers known to work with {toolkit} ({wanted}); newer drivers usually support "
        "older toolkits",
        "比已知与 {toolkit} 配套的（{wanted}）更新；新驱动通常兼容旧工具包",
    ),
    VersionFit.OTHER: Text(
        "{wanted} is known to work with {toolkit}; nothing is known about this one",
        "已知与 {toolkit} 配套的是 {wanted}；该版本情况未知",
    ),
}
_STATUS = {VersionFit.FITS: Status.FINE, VersionFit.OLDER: Status.DOUBT}
_FIRMWARE_FITS = Text("within the range that the driver declares: {spans}", "在驱动声明的范围内：{spans}")
_FIRMWARE_OTHER = Text(
    "the driver supports only {spans}; update driver and firmware together, then restart the "
    "machine; get them: {get}",
    "驱动只支持 {spans}；请同时升级驱动与固件并重启机器；获取：{get}",
)


def check(station: Station) -> Iterator[CheckResult]:
    """One result, and one for the firmware where its version is told."""
    name, version = station.table.driver.name, station.driver
    if not name:
        return
    if version is None and not station.nodes:
        yield CheckResult(ID, name, Status.BLOCKS, _ABSENT, _NEEDED.format(get=station.table.get))
    elif version is None:
        yield CheckResult(ID, name, Status.UNSEEN, _SOME, _HOST)
    else:
        yield _judged(station, name, version)
    yield from _firmware(station)


def _judged(station: Station, name: str, version: str) -> CheckResult:
    found = Text(version, version)
    label = " ".join(filter(None, (station.table.toolkit.name, station.toolkit)))
    row = driver_row(station.table, station.toolkit) if station.toolkit else None
    if row is None:
        return CheckResult(ID, name, Status.FINE, found, _NOT_KNOWN.format(toolkit=label or "PyTorch"))
    how = fit(version, row.driver)
    why = _WORDS[how].format(toolkit=label, wanted=" / ".join(row.driver), get=station.table.get)
    return CheckResult(ID, name, _STATUS.get(how, Status.INFO), found, why, source=row.source)


def _firmware(station: Station) -> Iterator[CheckResult]:
    """By what the driver's own file says, which no table need know."""
    version, spans = station.firmware, station.firmware_spans
    limits = re.findall(r"\[([^,\]]+),([^,\]]+)\]", spans or "")
    if version is None or not limits:
        return
    listed = ", ".join(f"{low} - {high}" for low, high in limits)
    is_right = any(place(low) <= place(version) <= place(f"{high}.99999") for low, high in limits)
    why = _FIRMWARE_FITS if is_right else _FIRMWARE_OTHER
    yield CheckResult(
        ID,
        "firmware",
        Status.FINE if is_right else Status.DOUBT,
        Text(version, version),
        why.format(spans=listed, get=station.table.get),
        source=", ".join(station.table.driver.version_files),
    )
