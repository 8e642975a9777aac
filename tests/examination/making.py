"""Machines for tests: a few files below a folder, and what else checks ask for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torchferry.examination.host.machine import Machine, ProcessLimit, Space

GIBIBYTE = 1 << 30
PLENTY = Space(16 * GIBIBYTE, 15 * GIBIBYTE)
# A server on which nothing is wrong.
GOOD = {
    **{f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor": "performance" for number in range(8)},
    "sys/devices/system/cpu/online": "0-7",
    "sys/devices/system/node/node0/cpulist": "0-7",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/fs/cgroup/cpu.max": "max 100000",
    "proc/cpuinfo": "processor : 0\nflags : sse4_2 avx2\n",
    "proc/meminfo": "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\nSwapTotal: 1000 kB\nSwapFree: 1000 kB\n",
}


def machine(
    root: Path,
    files: Mapping[str, str | None] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    processors: int = 8,
    nproc: int = 1,
    architecture: str = "x86_64",
    packages: Mapping[str, str] | None = None,
    turbo: bool | None = None,
    shared_memory: Space | None = PLENTY,
    limits: Mapping[str, ProcessLimit] | None = None,
) -> Machine:
    """The good server, with these changes; a file that is None is not there."""
    for name, text in {**GOOD, **(files or {})}.items():
        if text is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + "\n")
    installed = {"pillow-simd": "9.5.0.post2"} if packages is None else packages
    return Machine(
        root,
        architecture,
        environment or {},
        frozenset(range(processors)),
        nproc,
        installed.get,
        lambda: turbo,
        lambda path: shared_memory,
        {"nofile": ProcessLimit(65536, 65536), "memlock": ProcessLimit(None, None)}
        if limits is None
        else limits,
    )
