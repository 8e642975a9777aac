"""Whether a process may wander between NUMA nodes, away from its memory and its device."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.checks.processors import cpu_numbers
from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "numa"
_UNSEEN = Text("no NUMA nodes in /sys", "/sys 中没有 NUMA 节点")
_UNSEEN_WHY = Text("a machine with one node, or one that hides its nodes", "单节点机器，或不显示节点")
_FOUND = Text(
    "nodes: {count}, of which this process may use {used}", "{count} 个节点，进程可使用其中 {used} 个"
)
_FINE = Text("memory and processors are on the same node", "内存与处理器在同一节点")
_WHY = Text(
    "memory of another node is slower; bind each process to the node of its device (see "
    "/sys/bus/pci/devices/*/numa_node), or use the vendor's variable",
    "访问其他节点的内存较慢；请把每个进程绑定到其设备所在节点（见 /sys/bus/pci/devices/*/numa_node）"
    "，或使用厂商的变量",
)
_BIND = "numactl --cpunodebind=0 --membind=0 python train.py"


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    nodes = [
        cpu_numbers(machine.read(f"{path.relative_to(machine.root)}/cpulist") or "")
        for path in machine.paths("sys/devices/system/node/node[0-9]*")
    ]
    with_processors = [node for node in nodes if node]
    if not with_processors:
        yield CheckResult(ID, "NUMA", Status.UNSEEN, _UNSEEN, _UNSEEN_WHY)
        return
    used = [node for node in with_processors if machine.affinity is None or node & machine.affinity]
    found = _FOUND.format(count=len(with_processors), used=len(used))
    if len(used) > 1:
        yield CheckResult(ID, "NUMA", Status.COULD, found, _WHY, (Command(_BIND, Reach.INSTALL),))
    else:
        yield CheckResult(ID, "NUMA", Status.FINE, found, _FINE)
