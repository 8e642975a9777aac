"""Which vector instructions the processor has: what libraries for images can use."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text

ID = "processor"
_KNOWN = ("sse4_2", "avx2", "avx512f", "amx_tile", "asimd", "sve")
_NONE = Text("none of {names}", "没有 {names}")
_WHY = Text("libraries built for them decode and resize images faster", "为其编译的库解码与缩放图像更快")
_UNSEEN = Text("no flags in /proc/cpuinfo", "/proc/cpuinfo 中没有指令集信息")


def flags(machine: Machine) -> frozenset[str]:
    """What /proc/cpuinfo lists, on x86 and on Arm."""
    for line in (machine.read("proc/cpuinfo") or "").splitlines():
        name, _, words = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(words.split())
    return frozenset()


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    known = flags(machine)
    if not known:
        yield CheckResult(ID, "CPU instructions", Status.UNSEEN, _UNSEEN, _WHY)
        return
    names = [name for name in _KNOWN if name in known]
    listed = ", ".join(names)
    found = Text(listed, listed) if names else _NONE.format(names=", ".join(_KNOWN))
    yield CheckResult(ID, "CPU instructions", Status.INFO, found, _WHY)
