"""Whether PyTorch is installed, and has the device where it needs no plugin."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.doctor.device.station import Station
from torchferry.doctor.device.versions import advised, build
from torchferry.doctor.model import Command, Reach, Result, Status
from torchferry.text import Text

ID = "torch"
_ABSENT = Text("not installed", "未安装")
_NEEDED = Text("every program needs it", "所有程序都需要它")
_BUILD = Text(
    "PyTorch has this device in builds with +{build} only; this one is for something else",
    "只有带 +{build} 的 PyTorch 构建支持该设备；当前构建用于其他设备",
)
_FINE = Text("installed", "已安装")


def check(station: Station) -> Iterator[Result]:
    """One result."""
    version, wanted = station.torch, station.table.plugin.torch_build
    if version is None:
        yield Result(ID, "torch", Status.BLOCKS, _ABSENT, _NEEDED, _commands(station))
    elif wanted and build(version) != wanted:
        commands = (Command(station.table.plugin.get, Reach.INSTALL),) if station.table.plugin.get else ()
        yield Result(
            ID, "torch", Status.BLOCKS, Text(version, version), _BUILD.format(build=wanted), commands
        )
    else:
        yield Result(ID, "torch", Status.FINE, Text(version, version), _FINE)


def _commands(station: Station) -> tuple[Command, ...]:
    facts = station.table.plugin
    if facts.torch_build and facts.get:
        return (Command(facts.get, Reach.INSTALL),)
    row = advised(station.table, None, station.toolkit, station.python, station.machine.architecture)
    version = row.torch if row else ""
    wanted = (
        f"torch=={version}" if version.count(".") == 2 else f"'torch=={version}.*'" if version else "torch"
    )
    return (Command(f"pip install {wanted}", Reach.INSTALL),)
