"""Whether large host tensors get large pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "huge-pages"
_FILE = "sys/kernel/mm/transparent_hugepage/enabled"
_UNSEEN = Text("not in /sys", "/sys 中没有")
_WHY = Text(
    "with `never`, every 4 KiB of a host tensor is a separate page; with `madvise`, programs can "
    "request huge pages",
    "为 `never` 时主机张量每 4 KiB 一页；`madvise` 允许程序申请大页",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    chosen = re.search(r"\[(\w+)\]", machine.read(_FILE) or "")
    if chosen is None:
        yield CheckResult(ID, "transparent huge pages", Status.UNSEEN, _UNSEEN, _WHY)
        return
    is_off = chosen[1] == "never"
    commands = (Command(f"sh -c 'echo madvise > /{_FILE}'", Reach.ROOT),) if is_off else ()
    status = Status.COULD if is_off else Status.FINE
    yield CheckResult(ID, "transparent huge pages", status, Text(chosen[1], chosen[1]), _WHY, commands)
