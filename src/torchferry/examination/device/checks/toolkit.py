"""Whether the vendor's toolkit is there, whole, for this processor, and belongs to the plugin."""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.examination.device.versions import fits, minor, place, release_of, toolkits
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text
from torchferry.vendors.machine import Release

ID = "toolkit"
_ABSENT = Text("not found; searched {places}", "未找到；查找了 {places}")
_NEEDED = Text(
    "the plugin uses its libraries for computing; get it: {get}", "插件依赖其中的库进行计算；获取：{get}"
)
_FOUND = Text("{version} in {folder}", "{version}，位于 {folder}")
_NO_VERSION = Text("of unknown version", "版本未知")
_PROCESSOR = Text("in {folder}, built for {other}", "位于 {folder}，对应 {other}")
_PROCESSOR_WHY = Text(
    "this machine is {here}, so its libraries can't be loaded; install the package for {here}: {get}",
    "本机是 {here}，无法加载其中的库；请安装 {here} 的软件包：{get}",
)
_OTHER = Text(
    "the vendor's table lists {wanted} for {plugin} {version}",
    "厂商配套表中 {plugin} {version} 对应 {wanted}",
)
_MATCHES = Text("matches the vendor's table for {plugin} {version}", "与厂商配套表中 {plugin} {version} 一致")
_COMPATIBLE = Text(
    "the vendor's table lists {wanted} for {plugin} {version}, and this version as compatible",
    "厂商配套表中 {plugin} {version} 对应 {wanted}，并标明兼容该版本",
)
_PATCH = Text(
    "a bugfix release of {wanted}, which the vendor's table lists for {plugin} {version}",
    "是厂商配套表中 {plugin} {version} 所对应 {wanted} 的后续修正版本",
)
_NEWER = Text(
    "newer than all known versions; the vendor's table lists {wanted} for {plugin} {version}",
    "比所有已知版本更新；厂商配套表中 {plugin} {version} 对应 {wanted}",
)
_NOT_KNOWN = Text("the version that the plugin needs is unknown", "插件需要哪个版本未知")
_NO_OPERATORS = Text("not found in {folder}", "在 {folder} 中未找到")
_NO_OPERATORS_WHY = Text(
    "the toolkit comes without compiled operators: they are a separate package for the card's type, "
    "with the same version; without it, operators are missing or compiled one by one; get it: {get}",
    "工具包不含编译好的算子：算子包需按卡的型号单独安装，且版本一致；缺少时会找不到算子或逐个编译；"
    "获取：{get}",
)
_PACKAGES_WHY = Text(
    "the toolkit's compilers import them; without them operators fail ('No module named ...')",
    "工具包的编译器会导入它们，缺少时算子会失败（'No module named ...'）",
)
_MISSING = Text("not installed: {names}", "未安装：{names}")


def check(station: Station) -> Iterator[CheckResult]:
    """One result, and one each for operators and packages that are missing; none where there is no toolkit."""
    facts = station.table.toolkit
    if not facts.name:
        return
    if station.toolkit_folder is None and station.toolkit is None:
        places = ", ".join((*(f"${name}" for name in facts.variables), *facts.folders))
        why = _NEEDED.format(get=station.table.get)
        yield CheckResult(ID, facts.name, Status.BLOCKS, _ABSENT.format(places=places), why)
        return
    other, folder = station.toolkit_architecture, station.toolkit_folder
    if other and folder is not None:
        found = _PROCESSOR.format(folder=station.shown(folder), other=other)
        why = _PROCESSOR_WHY.format(here=station.machine.architecture, get=station.table.get)
        yield CheckResult(ID, facts.name, Status.BLOCKS, found, why)
    else:
        yield _judged(station)
    patterns = facts.operators if folder is not None and not other else ()
    if folder is not None and patterns and not any(map(os.path.exists, station.in_toolkit(patterns))):
        found = _NO_OPERATORS.format(folder=station.shown(folder))
        why = _NO_OPERATORS_WHY.format(get=station.table.get)
        yield CheckResult(ID, f"{facts.name} operators", Status.DOUBT, found, why)
    missing = [name for name in facts.packages if station.machine.version(name) is None]
    if missing:
        command = Command(f"pip install {' '.join(missing)}", Reach.INSTALL)
        found = _MISSING.format(names=", ".join(missing))
        yield CheckResult(ID, "Python packages", Status.DOUBT, found, _PACKAGES_WHY, (command,))


def _judged(station: Station) -> CheckResult:
    name = station.table.toolkit.name
    folder = station.shown(station.toolkit_folder) if station.toolkit_folder else "?"
    found = _FOUND.format(version=station.toolkit or _NO_VERSION, folder=folder)
    row = release_of(station.table, station.plugin) if station.plugin else None
    if row is None or not row.toolkit or station.toolkit is None:
        return CheckResult(ID, name, Status.INFO, found, _NOT_KNOWN)
    status, why = _fit(station, row, station.toolkit)
    values = {"plugin": station.table.plugin.package, "version": station.plugin}
    return CheckResult(ID, name, status, found, why.format(wanted=" / ".join(row.toolkit), **values))


def _fit(station: Station, row: Release, version: str) -> tuple[Status, Text]:
    if fits(version, row.toolkit):
        return Status.FINE, _MATCHES
    if fits(version, row.compatible):
        return Status.FINE, _COMPATIBLE
    if any(minor(version) == minor(each) and place(version) > place(each) for each in row.toolkit):
        return Status.INFO, _PATCH
    if all(place(version) > place(each.removeprefix(">=")) for each in toolkits(station.table)):
        return Status.INFO, _NEWER
    return Status.DOUBT, _OTHER
