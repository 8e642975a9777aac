"""Whether the driver is there."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.doctor.device.station import Station
from torchferry.doctor.device.versions import fits, release_of
from torchferry.doctor.model import Result, Status
from torchferry.text import Text

ID = "driver"
_ABSENT = Text("no sign of it: no device file, no version", "没有迹象：没有设备文件，也没有版本信息")
_NEEDED = Text(
    "without it no device can be used; get it: {get}; in a container it comes from the host",
    "没有它无法使用设备；获取：{get}；容器中使用主机的驱动",
)
_SOME = Text("there are device files, but no version is told", "有设备文件，但没有版本信息")
_HOST = Text(
    "in a container, mount the driver's folder of the host to see its version",
    "容器中请挂载主机的驱动目录以查看版本",
)
_FINE = Text("installed; which version the toolkit needs is not known", "已安装；工具包需要哪个版本未知")
_MATCHES = Text("new enough for {plugin}", "满足 {plugin} 的要求")
_OTHER = Text("{plugin} needs {wanted}", "{plugin} 需要 {wanted}")


def check(station: Station) -> Iterator[Result]:
    """One result."""
    name, version = station.table.driver.name, station.driver
    if not name:
        return
    if version is None and not station.nodes:
        yield Result(ID, name, Status.BLOCKS, _ABSENT, _NEEDED.format(get=station.table.get))
        return
    if version is None:
        yield Result(ID, name, Status.UNSEEN, _SOME, _HOST)
        return
    found = Text(version, version)
    row = release_of(station.table, station.plugin) if station.plugin else None
    if row is None or not row.driver:
        yield Result(ID, name, Status.FINE, found, _FINE)
    elif fits(version, row.driver):
        yield Result(ID, name, Status.FINE, found, _MATCHES.format(plugin=row.plugin))
    else:
        why = _OTHER.format(plugin=row.plugin, wanted=" / ".join(row.driver))
        yield Result(ID, name, Status.DOUBT, found, why)
