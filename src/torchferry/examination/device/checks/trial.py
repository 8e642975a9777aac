"""Whether a program really computes on the devices: what all other checks can only make likely."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.device.station import TRIAL_SECONDS, Station
from torchferry.report.checks import CheckResult, Status
from torchferry.report.safe import shortened
from torchferry.text import Text
from torchferry.units import signal_name

ID = "trial"
_SUBJECT = "trial"
_DONE = Text("computed on {count} devices", "{count} 个设备完成计算")
_DONE_WHY = Text(
    "a separate process imported the plugin and added tensors on each device",
    "独立进程导入插件并在每个设备上做了张量加法",
)
_NO_DEVICE = Text("the import works, but no device is seen", "可以导入，但看不到设备")
_NO_DEVICE_WHY = Text(
    "check device files, the list of visible devices and the driver in the other lines",
    "请查看设备文件、可见设备列表与驱动等各项",
)
_LATE = Text("no response within {seconds} s", "{seconds} 秒内没有响应")
_LATE_WHY = Text(
    "importing the plugin, or the first call on a device, hangs; check `dmesg`, and for processes "
    "that use the device",
    "导入插件或首次使用设备时无响应；请查看 `dmesg` 以及占用设备的进程",
)
_CRASHED = Text("killed by {name}: {line}", "被 {name} 终止：{line}")
_FAILED_WHY = Text(
    "every program that uses the device ends like this; `ferry explain` explains many such messages",
    "使用设备的程序都会这样结束；`ferry explain` 能解释许多此类信息",
)
_LONGEST = 300


def check(station: Station) -> Iterator[CheckResult]:
    """One result, where a trial was asked for and there is something to try."""
    output = station.trial() if station.trial and station.torch else None
    if output is None:
        return
    if output.code is None:
        yield CheckResult(ID, _SUBJECT, Status.BLOCKS, _LATE.format(seconds=TRIAL_SECONDS), _LATE_WHY)
    elif output.code:
        # The last line that it printed, which for Python is the error.
        lines = [line.strip() for line in output.text.splitlines() if line.strip()]
        line = shortened(lines[-1], _LONGEST) if lines else f"exit code {output.code}"
        fault = Text(line, line)
        if output.code < 0:
            fault = _CRASHED.format(name=signal_name(-output.code), line=line if lines else "-")
        yield CheckResult(ID, _SUBJECT, Status.BLOCKS, fault, _FAILED_WHY)
    elif count := output.text.count("computed "):
        yield CheckResult(ID, _SUBJECT, Status.FINE, _DONE.format(count=count), _DONE_WHY)
    else:
        yield CheckResult(ID, _SUBJECT, Status.BLOCKS, _NO_DEVICE, _NO_DEVICE_WHY)
