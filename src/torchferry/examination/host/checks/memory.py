"""Whether the machine is short of memory and swaps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text
from torchferry.units import size

ID = "memory"
_LITTLE = 0.05  # of all memory
_SWAPPED = 0.02  # of all memory: below that only what nobody uses lies in the swap
_UNSEEN = Text("no /proc/meminfo", "没有 /proc/meminfo")
_FOUND = Text(
    "{available} of {total} available, {swapped} in swap",
    "可用 {available} / 共 {total}，swap 使用 {swapped}",
)
_LOOK = Text("check with `free -h`, on the host as well", "请用 `free -h` 查看，包括宿主机")
_FINE = Text("enough memory, hardly any swap in use", "内存充足，几乎没有使用 swap")
_LOW = Text(
    "hardly any memory is left: file caches are dropped, and data loaders read from disk again",
    "内存所剩无几：文件缓存会被丢弃，数据加载需要重新读盘",
)
_SWAP = Text(
    "memory was swapped out and returns page by page; end what you do not need, then empty the swap",
    "有内存被换出，会逐页换回；请结束不需要的程序，再清空 swap",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    rows = re.findall(r"^(\w+):\s+(\d+) kB", machine.read("proc/meminfo") or "", re.MULTILINE)
    sizes = {name: int(count) << 10 for name, count in rows}
    total, available = sizes.get("MemTotal", 0), sizes.get("MemAvailable", sizes.get("MemFree", 0))
    if not total:
        yield CheckResult(ID, "memory", Status.UNSEEN, _UNSEEN, _LOOK)
        return
    # The limit of the control group, and what is left below it; caches of files give way.
    limit, used = (machine.read(f"sys/fs/cgroup/memory.{name}") or "" for name in ("max", "current"))
    if limit.isdecimal() and used.isdecimal() and int(limit) < total:
        cached = re.search(r"^file (\d+)$", machine.read("sys/fs/cgroup/memory.stat") or "", re.MULTILINE)
        left = int(limit) - int(used) + (int(cached[1]) if cached else 0)
        total, available = int(limit), min(available, left)
    swapped = sizes.get("SwapTotal", 0) - sizes.get("SwapFree", 0)
    found = _FOUND.format(available=size(available), total=size(total), swapped=size(swapped))
    if available < _LITTLE * total:
        yield CheckResult(ID, "memory", Status.COSTS, found, _LOW)
    elif swapped > _SWAPPED * total:
        command = Command("swapoff -a && swapon -a", Reach.ROOT)
        yield CheckResult(ID, "memory", Status.COULD, found, _SWAP, (command,))
    else:
        yield CheckResult(ID, "memory", Status.FINE, found, _FINE)
