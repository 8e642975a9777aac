"""Variables of Python and PyTorch that help to debug, and slow programs down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "python"
_SOME = r".+"


class _Flag(NamedTuple):
    values: str  # pattern of those that cost
    status: Status
    why: Text


_FLAGS = {
    "PYTHONDEVMODE": _Flag(
        r"(?!0$).+", Status.COSTS, Text("extra checks in every call", "每次调用都做额外检查")
    ),
    "PYTHONMALLOC": _Flag(
        r".*debug|malloc",
        Status.COSTS,
        Text(
            "every allocation of Python is checked, or uses malloc",
            "Python 的每次内存分配都被检查，或改用 malloc",
        ),
    ),
    "PYTHONTRACEMALLOC": _Flag(
        r"(?!0$).+", Status.COSTS, Text("every allocation stores a traceback", "每次内存分配都保存调用栈")
    ),
    "PYTHONASYNCIODEBUG": _Flag(
        _SOME, Status.COSTS, Text("asyncio checks every callback", "asyncio 检查每个回调")
    ),
    "PYTHONPROFILEIMPORTTIME": _Flag(_SOME, Status.COULD, Text("prints every import", "打印每次导入")),
    "PYTHONDONTWRITEBYTECODE": _Flag(
        _SOME,
        Status.COULD,
        Text(
            "modules are compiled again at each start, also in each spawned worker",
            "每次启动、每个 spawn 的进程都重新编译模块",
        ),
    ),
    "PYTHONUNBUFFERED": _Flag(
        _SOME,
        Status.COULD,
        Text("each print waits for the terminal or the file", "每次 print 都等待终端或文件"),
    ),
    "TORCH_SHOW_DISPATCH_TRACE": _Flag(
        r"1", Status.COSTS, Text("prints every call of the dispatcher", "打印分发器的每次调用")
    ),
    "TORCH_DISTRIBUTED_DEBUG": _Flag(
        r"(?i:detail)",
        Status.COSTS,
        Text(
            "every collective is checked for agreement between the processes",
            "每次集合通信都检查各进程是否一致",
        ),
    ),
    "CUDA_LAUNCH_BLOCKING": _Flag(
        r"1",
        Status.COSTS,
        Text(
            "the host waits for every kernel; the runtime layer applies it to other devices",
            "主机等待每个 kernel；运行时层会将其用于其他设备",
        ),
    ),
}
_NONE = Text("none is set", "均未设置")
_NONE_WHY = Text("checked {names}", "检查了 {names}")


def check(machine: Machine) -> Iterator[CheckResult]:
    """One result for each that is set and costs, or one that none is."""
    slow = [
        (name, value, flag)
        for name, flag in _FLAGS.items()
        if re.fullmatch(flag.values, value := machine.environment.get(name, ""))
    ]
    for name, value, flag in slow:
        yield CheckResult(
            ID, name, flag.status, Text(value, value), flag.why, (Command(f"unset {name}", Reach.SHELL),)
        )
    if not slow:
        yield CheckResult(ID, "debug flags", Status.FINE, _NONE, _NONE_WHY.format(names=", ".join(_FLAGS)))
