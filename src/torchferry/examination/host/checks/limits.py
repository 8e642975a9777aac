"""Limits of the shell that loaders and communication run into."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.machine import Machine, ProcessLimit
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "limits"
_FILES = 4096
_FOUND = Text("{soft}, at most {hard}", "{soft}，上限 {hard}")
_FILES_WHY = Text(
    "each batch in flight of a data loader holds open files; many workers exhaust the default of 1024",
    "数据加载器每个传递中的批次都占用打开的文件；加载进程多时会用尽默认的 1024",
)
_LOCK_WHY = Text(
    "memory that devices and network cards read directly must be locked; communication between "
    "machines needs `unlimited`",
    "设备与网卡直接读取的内存需要锁定；机器间通信需要 `unlimited`",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """Two results, where there are such limits."""
    files, locked = machine.limits.get("nofile"), machine.limits.get("memlock")
    if files is not None:
        low = files.soft is not None and files.soft < _FILES
        wanted = 65536 if files.hard is None else min(files.hard, 65536)
        command = Command(f"ulimit -n {wanted}", Reach.SHELL)
        commands = (command,) if low and wanted > (files.soft or 0) else ()
        status = Status.COULD if low else Status.FINE
        yield CheckResult(ID, "ulimit -n", status, _found(files), _FILES_WHY, commands)
    if locked is not None:
        low = locked.soft is not None
        commands = (Command("ulimit -l unlimited", Reach.SHELL),) if low and locked.hard is None else ()
        status = Status.INFO if low else Status.FINE
        yield CheckResult(ID, "ulimit -l", status, _found(locked), _LOCK_WHY, commands)


def _found(limit: ProcessLimit) -> Text:
    soft, hard = ("unlimited" if value is None else str(value) for value in limit)
    return _FOUND.format(soft=soft, hard=hard)
