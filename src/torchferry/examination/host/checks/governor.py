"""Whether the processors run at their full clock: the governor, and the power policy of the firmware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "governor"
_PATTERN = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"

_WHY = Text(
    "only `performance` keeps the clock high between the short bursts that launch operators; other "
    "governors lower it",
    "只有 `performance` 在下发算子的短促负载之间保持频率；其他调速器会降频",
)
_OWN_DRIVER = Text(
    "the driver {driver} chooses the clock itself; `powersave` is not the lowest clock, but "
    "`performance` reacts at once",
    "驱动 {driver} 自行选择频率，`powersave` 并非最低频率，但 `performance` 反应更快",
)
_UNSEEN = Text("no cpufreq in /sys", "/sys 中没有 cpufreq")
_UNSEEN_WHY = Text(
    "a virtual machine's or container's host decides, so check there; otherwise the firmware is in control",
    "虚拟机或容器由宿主机决定，请在宿主机上查看；否则由固件控制",
)
_POLICY = Text("not visible to the operating system", "操作系统无法查看")
_POLICY_WHY = {
    True: Text(
        "set it to Performance in the firmware; on Arm servers: Advanced > Performance Config > Power Policy",
        "请在固件中设为 Performance；ARM 服务器为 Advanced > Performance Config > Power Policy",
    ),
    False: Text(
        "set it to Performance in the firmware; on x86 servers: Advanced > Socket Configuration > "
        "Advanced Power Mgmt. Configuration > Power Policy",
        "请在固件中设为 Performance；x86 服务器为 Advanced > Socket Configuration > Advanced Power Mgmt. "
        "Configuration > Power Policy",
    ),
}


def check(machine: Machine) -> Iterator[CheckResult]:
    """Two results: the governor, and the policy that only a person can look up."""
    yield _governor(machine)
    is_arm = machine.architecture.startswith(("aarch64", "arm"))
    yield CheckResult(ID, "BIOS Power Policy", Status.UNSEEN, _POLICY, _POLICY_WHY[is_arm])


def _governor(machine: Machine) -> CheckResult:
    texts = [machine.read(str(path.relative_to(machine.root))) for path in machine.paths(_PATTERN)]
    counts = Counter(text for text in texts if text)
    if not counts:
        return CheckResult(ID, "CPU governor", Status.UNSEEN, _UNSEEN, _UNSEEN_WHY)
    found = ", ".join(f"{name} ({count})" for name, count in counts.most_common())
    text = Text(found, found)
    if set(counts) == {"performance"}:
        return CheckResult(ID, "CPU governor", Status.FINE, text, _WHY)
    driver = machine.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver") or ""
    own = driver.startswith(("intel_pstate", "amd-pstate", "amd_pstate"))
    why = _OWN_DRIVER.format(driver=driver) if own else _WHY
    # The tool comes with the kernel's package, under another name on each family of systems.
    system = (machine.read("etc/os-release") or "").lower()
    debian = "debian" in system or "ubuntu" in system
    install = "apt-get install -y linux-tools-$(uname -r)" if debian else "yum install -y kernel-tools"
    commands = tuple(Command(line, Reach.ROOT) for line in (install, "cpupower frequency-set -g performance"))
    return CheckResult(ID, "CPU governor", Status.COSTS, text, why, commands)
