"""Room for compiled operators, logs and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchferry.doctor.device.station import Station
from torchferry.doctor.model import Result, Status
from torchferry.text import Text

ID = "disk"
_LITTLE = 2 << 30
_FOUND = Text("{free:.1f} GiB free of {total:.1f}", "共 {total:.1f} GiB，剩余 {free:.1f} GiB")
_WHY = Text(
    "vendors' runtimes keep compiled operators and logs on the disk, and checkpoints come on top: a full disk ends a training",
    "厂商运行时在磁盘上保存编译的算子与日志，另有检查点：磁盘写满会中断训练",
)


def check(station: Station) -> Iterator[Result]:
    """A result for each place in which programs write."""
    home = station.machine.environment.get("HOME", "")
    temporary = station.machine.environment.get("TMPDIR", "") or "/tmp"
    places = {"work folder": station.folder, "home": station.path(home) if home else None}
    for name, place in {**places, "temporary files": station.path(temporary)}.items():
        space = station.machine.space(place) if isinstance(place, Path) else None
        if space is None or not space.total:
            continue
        found = _FOUND.format(free=space.free / (1 << 30), total=space.total / (1 << 30))
        yield Result(ID, name, Status.DOUBT if space.free < _LITTLE else Status.FINE, found, _WHY)
