"""Room for compiled operators, logs and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.units import size

ID = "disk"
_LITTLE = 2 << 30
_FOUND = Text("{free} free of {total}", "共 {total}，剩余 {free}")
_CLOSED = Text("{place}: not writable", "{place}：无法写入")
_CLOSED_WHY = Text(
    "vendors' runtimes write compiled operators, locks and logs there, and fail or slow down if they "
    "can't; make it writable, or set HOME and TMPDIR to writable folders",
    "厂商运行时会在其中写入编译的算子、锁与日志，无法写入时会失败或变慢；请改为可写，或将 HOME 与 "
    "TMPDIR 设为可写文件夹",
)
_WHY = Text(
    "vendors' runtimes keep compiled operators and logs on disk, in addition to your checkpoints; a "
    "full disk stops training",
    "厂商运行时在磁盘上保存编译的算子与日志，另有 checkpoint；磁盘写满会中断训练",
)


def check(station: Station) -> Iterator[CheckResult]:
    """A result for each place in which programs write."""
    home = station.machine.environment.get("HOME", "")
    temporary = station.machine.environment.get("TMPDIR", "") or "/tmp"
    places = {"work folder": station.folder, "home": station.path(home) if home else None}
    for name, place in {**places, "temporary files": station.path(temporary)}.items():
        if place is None:
            continue
        if not station.machine.writable(place):
            yield CheckResult(ID, name, Status.DOUBT, _CLOSED.format(place=station.shown(place)), _CLOSED_WHY)
            continue
        space = station.machine.space(place)
        if space is None or not space.total:
            continue
        found = _FOUND.format(free=size(space.free), total=size(space.total))
        yield CheckResult(ID, name, Status.DOUBT if space.free < _LITTLE else Status.FINE, found, _WHY)
