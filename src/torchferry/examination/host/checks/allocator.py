"""Which malloc the program gets: tcmalloc and jemalloc hand memory between threads faster than the C library's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "allocator"
_NAMES = ("tcmalloc", "jemalloc")
_PATTERNS = tuple(
    f"{folder}/lib{name}*.so.*"
    for folder in ("usr/lib/*", "usr/lib64", "usr/local/lib", "usr/lib")
    for name in _NAMES
)
_C_LIBRARY = Text("that of the C library", "C 库自带的")
_PRELOADED = Text("{name} is preloaded", "已预加载 {name}")
_WHY = Text(
    "programs that create many small tensors on the host, or load data in threads, often benefit "
    "from tcmalloc or jemalloc; measure it",
    "在主机上创建大量小张量或用线程加载数据的程序常可受益于 tcmalloc 或 jemalloc；请实际测量",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    preloaded = machine.environment.get("LD_PRELOAD", "")
    name = next((name for name in _NAMES if name in preloaded), None)
    if name is not None:
        yield CheckResult(ID, "malloc", Status.FINE, _PRELOADED.format(name=name), _WHY)
        return
    library = next((path for pattern in _PATTERNS for path in machine.paths(pattern)), None)
    if library is None:
        yield CheckResult(ID, "malloc", Status.INFO, _C_LIBRARY, _WHY)
        return
    path = shlex.quote(f"/{library.relative_to(machine.root)}")
    command = Command(f'export LD_PRELOAD={path}"${{LD_PRELOAD:+:$LD_PRELOAD}}"', Reach.SHELL)
    yield CheckResult(ID, "malloc", Status.COULD, _C_LIBRARY, _WHY, (command,))
