"""Whether /dev/shm holds the batches that loader workers hand over."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text
from torchferry.units import size

ID = "shared-memory"
_ENOUGH = 1 << 30  # Docker's default of 64 MiB holds a handful of batches
_UNSEEN = Text("no /dev/shm", "没有 /dev/shm")
_FOUND = Text("{total}, {free} free", "{total}，空闲 {free}")
_WHY = Text(
    "loader workers pass batches through it; when it is full they stop with a bus error, so that "
    "only loading without workers runs; start the container with --shm-size=16g or --ipc=host",
    "数据加载进程通过它传递批次；用尽时会因 bus error 退出，只能不用加载进程；请以 --shm-size=16g 或 "
    "--ipc=host 启动容器",
)
_FINE = Text("enough for batches of loader workers", "足够数据加载进程传递批次")


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    space = machine.space(machine.root / "dev/shm")
    if space is None or not space.total:
        yield CheckResult(ID, "/dev/shm", Status.UNSEEN, _UNSEEN, _WHY)
        return
    found = _FOUND.format(total=size(space.total), free=size(space.free))
    if space.free >= _ENOUGH:
        yield CheckResult(ID, "/dev/shm", Status.FINE, found, _FINE)
    else:
        command = Command("mount -o remount,size=16G /dev/shm", Reach.ROOT)
        yield CheckResult(ID, "/dev/shm", Status.COSTS, found, _WHY, (command,))
