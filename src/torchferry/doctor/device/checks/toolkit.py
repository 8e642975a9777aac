"""Whether the vendor's toolkit is there, and belongs to the plugin."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.doctor.device.station import Station
from torchferry.doctor.device.versions import fits, release_of
from torchferry.doctor.model import Result, Status
from torchferry.text import Text

ID = "toolkit"
_ABSENT = Text("not found; looked for it in {places}", "未找到；查找了 {places}")
_NEEDED = Text("its libraries compute for the plugin; get it: {get}", "插件依赖其中的库；获取：{get}")
_FOUND = Text("{version} in {folder}", "{version}，位于 {folder}")
_NO_VERSION = Text("of unknown version", "版本未知")
_OTHER = Text(
    "the vendor's table names {wanted} for {plugin} {version}",
    "厂商配套表中 {plugin} {version} 对应 {wanted}",
)
_MATCHES = Text("as the vendor's table says for {plugin} {version}", "与厂商配套表中 {plugin} {version} 一致")
_NOT_KNOWN = Text("which one the plugin needs is not known", "插件需要哪个版本未知")


def check(station: Station) -> Iterator[Result]:
    """One result; none where there is no toolkit of its own."""
    facts = station.table.toolkit
    if not facts.name:
        return
    if station.toolkit_folder is None and station.toolkit is None:
        places = ", ".join((*(f"${name}" for name in facts.variables), *facts.folders))
        why = _NEEDED.format(get=station.table.get)
        yield Result(ID, facts.name, Status.BLOCKS, _ABSENT.format(places=places), why)
        return
    folder = station.shown(station.toolkit_folder) if station.toolkit_folder else "?"
    found = _FOUND.format(version=station.toolkit or _NO_VERSION, folder=folder)
    row = release_of(station.table, station.plugin) if station.plugin else None
    if row is None or not row.toolkit or station.toolkit is None:
        yield Result(ID, facts.name, Status.INFO, found, _NOT_KNOWN)
        return
    values = {"plugin": station.table.plugin.package, "version": station.plugin}
    if fits(station.toolkit, row.toolkit):
        yield Result(ID, facts.name, Status.FINE, found, _MATCHES.format(**values))
    else:
        wanted = " / ".join(row.toolkit)
        yield Result(ID, facts.name, Status.DOUBT, found, _OTHER.format(wanted=wanted, **values))
