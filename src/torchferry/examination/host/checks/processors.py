"""How many processors the process may use, and how many loader workers fit."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text

ID = "processors"
_UNSEEN = Text("the number of processors is unknown", "处理器数未知")
_FOUND = Text("{mask} allowed by affinity, {all} online", "亲和性允许 {mask} 个，在线 {all} 个")
_QUOTA = Text(
    "{mask} allowed by affinity, but a quota of {quota}", "亲和性允许 {mask} 个，但配额为 {quota} 个"
)
_FINE = Text("no lower quota", "没有更低的配额")
_QUOTA_WHY = Text(
    "libraries start a thread for each of the {mask}, and the container is paused whenever {quota} "
    "are used up; raise the quota (docker run --cpus), or set thread counts to it",
    "库会为 {mask} 个处理器各启动一个线程，用满 {quota} 个后容器会反复被暂停；请提高配额（docker run "
    "--cpus），或将线程数设为配额",
)
_WORKERS = Text(
    "{workers} for each process (processes: {nproc}), as the total num_workers of its data loaders",
    "{nproc} 个进程每个 {workers} 个：其所有加载器的 num_workers 之和",
)
_WORKERS_WHY = Text(
    "one processor is left for the process itself; more workers only take turns",
    "给进程本身留一个处理器；更多的加载进程只会轮流执行",
)
_TOO_FEW = Text(
    "fewer than two processors for each process: data loading and launches wait for each other",
    "每个进程不足两个处理器：数据加载与算子下发会互相等待",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the two results of the check."""
    mask, quota, usable = len(machine.affinity or ()), machine.quota, machine.usable
    if not mask or usable is None:
        yield CheckResult(ID, "processors", Status.UNSEEN, _UNSEEN, _WORKERS_WHY)
        return
    if quota is not None and quota < mask:
        shown = f"{quota:g}"
        found, why = _QUOTA.format(mask=mask, quota=shown), _QUOTA_WHY.format(mask=mask, quota=shown)
        yield CheckResult(ID, "processors", Status.COSTS, found, why)
    else:
        online = len(cpu_numbers(machine.read("sys/devices/system/cpu/online") or "")) or mask
        yield CheckResult(ID, "processors", Status.FINE, _FOUND.format(mask=mask, all=online), _FINE)
    workers = int(usable / machine.nproc) - 1
    found = _WORKERS.format(workers=max(workers, 0), nproc=machine.nproc)
    if workers < 1:
        yield CheckResult(ID, "loader workers", Status.COSTS, found, _TOO_FEW)
    else:
        yield CheckResult(ID, "loader workers", Status.INFO, found, _WORKERS_WHY)


def cpu_numbers(text: str) -> frozenset[int]:
    """0-3,8 as Linux writes sets of processors."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
