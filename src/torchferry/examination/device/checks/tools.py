"""What parts of TorchFerry need beside Python: a compiler, HDF5, a fast reader of traces."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "tools"
_COMPILERS = ("g++", "clang++", "c++")
_COMPILER_WHY = Text(
    "the simulated device and the vendor's extensions are compiled with it; programs on a real "
    "device do not need it",
    "模拟设备与厂商扩展需要它编译；在真实设备上运行程序不需要",
)
_GCC = Text("; the plugin itself is built with gcc {gcc}", "；插件本身用 gcc {gcc} 构建")
_ABSENT = Text("not found", "未找到")
_PACKAGES = {
    "h5py": (Text("`ferry record` and `ferry compare` store operators in HDF5",
"`ferry record` 与 `ferry compare` 用 HDF5 保存算子"), "torchferry[record]"),
    "msgspec": (Text("`ferry analyze` reads traces with it", "`ferry analyze` 用它读取 trace"), "torchferry[perf]"),
}  # fmt: skip


def check(station: Station) -> Iterator[CheckResult]:
    """Results for a compiler and for two packages."""
    yield _compiler(station)
    for name, (why, extra) in _PACKAGES.items():
        version = station.machine.version(name)
        if version is None:
            command = Command(f"pip install '{extra}'", Reach.INSTALL)
            yield CheckResult(ID, name, Status.INFO, _ABSENT, why, (command,))
        else:
            yield CheckResult(ID, name, Status.FINE, Text(version, version), why)


def _compiler(station: Station) -> CheckResult:
    why = _COMPILER_WHY
    if station.table.gcc:
        more = _GCC.format(gcc=station.table.gcc)
        why = Text(why.en + more.en, why.zh + more.zh)
    path = next(filter(None, map(station.program, _COMPILERS)), None)
    if path is None:
        return CheckResult(ID, "C++ compiler", Status.INFO, _ABSENT, why)
    output = station.run([path, "--version"])
    line = output.text.splitlines()[0] if output is not None and output.text.strip() else path
    return CheckResult(ID, "C++ compiler", Status.FINE, Text(line, line), why)
