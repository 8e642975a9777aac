"""The plugin without its toolkit: that it takes `import torch` with it, and whether it can run on an emulated device."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.device.elf import LibrarySearch
from torchferry.examination.device.station import Station
from torchferry.examination.device.versions import release
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "emulation"
_IMPORT = "import torch"
_DEVICE = "emulated device"
_FAILS = Text("fails here in every program", "在任何程序中都会失败")
_FAILS_WHY = Text(
    "PyTorch loads {plugin} automatically, but its library {library} is missing: 'Failed to load the "
    "backend extension: {module}'; install the toolkit, or remove the plugin from this environment "
    "({emulate} keeps one outside of it)",
    "PyTorch 会自动加载 {plugin}，而它缺少库 {library}：'Failed to load the backend extension: "
    "{module}'；请安装工具包，或从此环境中移除该插件（{emulate} 会在环境之外保存一份）",
)
_SET_UP = Text("set up, with {plugin} {version}", "已就绪，插件 {plugin} {version}")
_SET_UP_WHY = Text(
    "ferry run --to {vendor} --emulate SCRIPT runs the vendor's own plugin without a device",
    "ferry run --to {vendor} --emulate SCRIPT 在没有设备时运行厂商官方插件",
)
_NOT_SET_UP = Text("not set up", "尚未设置")
_NOT_SET_UP_WHY = Text(
    "the vendor's own plugin can run here without a device; ferry emulate setup --to {vendor} downloads it",
    "厂商官方插件可以在没有设备时于此运行；ferry emulate setup --to {vendor} 会下载它",
)
_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_FIRST_WITH_AUTOLOAD = (2, 5)


def check(station: Station) -> Iterator[CheckResult]:
    """A result for an import that fails, and one for the emulated device."""
    if not station.vendor.emulation.toolkit:
        return
    yield from _import(station)
    if station.emulation is None:
        return
    version = station.emulation()
    found, why = _NOT_SET_UP, _NOT_SET_UP_WHY
    if version is not None:
        found, why = _SET_UP.format(plugin=station.table.plugin.package, version=version), _SET_UP_WHY
    yield CheckResult(ID, _DEVICE, Status.INFO, found, why.format(vendor=station.vendor.name))


def _import(station: Station) -> Iterator[CheckResult]:
    files = station.plugin_files
    is_loaded = station.machine.environment.get(_SWITCH, "1") == "1"
    if not files or not is_loaded or station.torch is None or release(station.torch) < _FIRST_WITH_AUTOLOAD:
        return
    known = set(station.table.libraries)
    missing = [name for name in LibrarySearch(station).needs(files).missing if name in known]
    if not missing:
        return
    package, vendor = station.table.plugin.package, station.vendor
    why = _FAILS_WHY.format(
        plugin=package,
        library=missing[0],
        module=vendor.plugin,
        emulate=f"ferry emulate setup --to {vendor.name}",
    )
    commands = (
        Command(f"pip uninstall {package}", Reach.INSTALL),
        Command(f"export {_SWITCH}=0", Reach.SHELL),
    )
    yield CheckResult(ID, _IMPORT, Status.BLOCKS, _FAILS, why, commands)
