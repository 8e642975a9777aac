"""How many threads each process starts for work on the host."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "threads"
_NAME = "OMP_NUM_THREADS"
_UNSET = Text(
    "not set: one thread per core in each process (processes: {nproc})",
    "未设置：{nproc} 个进程各自为每个核启动一个线程",
)
_SET = Text("{value} in each process (processes: {nproc})", "{nproc} 个进程每个 {value} 个")
_FINE = Text("no more threads than processors", "线程不多于处理器")
_WRONG = Text("not a number", "不是数字")
_TOO_MANY = Text(
    "{threads} threads share {usable} processors and wait for each other at every parallel loop",
    "{threads} 个线程共用 {usable} 个处理器，每个并行循环都要互相等待",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """One result, where the number of processors is known."""
    usable = machine.usable
    if usable is None:
        return
    value = machine.environment.get(_NAME, "")
    share = max(int(usable / machine.nproc), 1)
    command = Command(f"export {_NAME}={share}", Reach.SHELL)
    first = value.split(",")[0].strip()
    if value and not (first.isascii() and first.isdecimal()):
        yield CheckResult(ID, _NAME, Status.COSTS, Text(value, value), _WRONG, (command,))
        return
    each = int(first) if value else len(machine.affinity or ())
    found = (_SET if value else _UNSET).format(value=value, nproc=machine.nproc)
    if each * machine.nproc <= usable:
        yield CheckResult(ID, _NAME, Status.FINE, found, _FINE)
    else:
        why = _TOO_MANY.format(threads=each * machine.nproc, usable=f"{usable:g}")
        # torchrun sets the variable to 1 for several processes; other ways of starting them do not
        status = Status.COSTS if value or each > usable else Status.COULD
        yield CheckResult(ID, _NAME, status, found, why, (command,))
