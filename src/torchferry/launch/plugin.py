"""Which device a program gets: the vendor's real one, its plugin on an emulated one, or a simulated one. No torch."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchferry import variables
from torchferry.emulate.build import is_set_up
from torchferry.emulate.plugins import refuse_without_emulation
from torchferry.errors import RunError
from torchferry.launch.place import DeviceKind, Place
from torchferry.sim import shims
from torchferry.text import NOTHING, Text, then
from torchferry.vendors.machine import load_machine
from torchferry.vendors.model import Vendor

_NOT_INSTALLED = Text(
    "{plugin} is not installed: running on a simulated {device} device",
    "未安装 {plugin}：在模拟的 {device} 设备上运行",
)
_LACKS_TOOLKIT = Text(
    "{plugin} is installed, but {library} of {toolkit} is not: running on a simulated {device} device",
    "已安装 {plugin}，但缺少 {toolkit} 的 {library}：在模拟的 {device} 设备上运行",
)
_EMULATED = Text(
    "no {device} device is here, and {plugin} is set up: running on it with an emulated {toolkit}; --sim simulates",
    "此处没有 {device} 设备，而 {plugin} 已就绪：在仿真的 {toolkit} 上用它运行；--sim 则改用模拟设备",
)
_WITHOUT_SIM = Text(
    ", or leave --sim out on a machine that has the device", "，在有该设备的机器上也可去掉 --sim"
)
_LIBRARY_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")


@dataclass(frozen=True)
class Choice:
    """The device of a run that did not say which it wants, and what its user is told about it."""

    kind: DeviceKind
    reason: Text | None = None


def choose(vendor: Vendor, sim: bool = False, emulate: bool = False, may_emulate: bool = True) -> Choice:
    """The device that is asked for; else the real one if there is one, else the vendor's plugin if it can run here,
    else a simulated device."""
    if sim:
        refuse_without_plugin(vendor, _WITHOUT_SIM)
        return Choice(DeviceKind.SIMULATED)
    if emulate:
        return Choice(DeviceKind.EMULATED)
    if not is_to_be_simulated(vendor):
        return Choice(DeviceKind.REAL)
    if may_emulate and os.environ.get(variables.EMULATE) != "0" and is_set_up(vendor):
        toolkit = load_machine(Path(vendor.folder)).toolkit.name
        told = {"device": vendor.device_type, "plugin": vendor.plugin, "toolkit": toolkit}
        return Choice(DeviceKind.EMULATED, _EMULATED.format(**told))
    return Choice(DeviceKind.SIMULATED, not_installed(vendor))


def place_of(
    vendor: Vendor | None,
    sim: bool = False,
    emulate: bool = False,
    as_is: str = "",
    converted: bool = False,
    vendor_paths: tuple[str, ...] = (),
    devices: int | None = None,
) -> Place:
    """Where a program runs whose results are looked at, if the options fit each other."""
    if vendor is None:
        option = "--emulate" if emulate else "--sim"
        if sim or emulate:
            raise RunError(
                Text(
                    f"{option} needs a device; name it with --to VENDOR",
                    f"{option} 需要指定设备；请用 --to VENDOR 指定",
                )
            )
        if converted:
            raise RunError(
                Text(
                    "--converted needs a target; name it with --to VENDOR",
                    "--converted 需要目标设备；请用 --to VENDOR 指定",
                )
            )
        kind = DeviceKind.AS_IS if as_is or has_gpu() else DeviceKind.REFERENCE
        return Place(kind, vendor_paths=vendor_paths, devices=devices, as_is=as_is)
    if as_is:
        raise RunError(
            Text(
                "--to and --device can't be used together; leave one out",
                "--to 与 --device 不能同时使用；请去掉其中一个",
            )
        )
    if sim:
        refuse_without_plugin(vendor, _WITHOUT_SIM)
    kind = DeviceKind.SIMULATED if sim or is_to_be_simulated(vendor) else DeviceKind.REAL
    if emulate:
        refuse_without_emulation(vendor)
        kind = DeviceKind.EMULATED
    return Place(kind, vendor, vendor_paths, devices, converted=converted, shared_randomness=True)


def refuse_without_plugin(vendor: Vendor, instead: Text = NOTHING) -> None:
    """Complain of a vendor whose device PyTorch has in tree; `instead` is what else its user could do."""
    if not vendor.plugin:
        raise RunError(
            Text(
                "{name}: PyTorch itself has the device `{device}`, so it can't be simulated; choose a vendor with its own plugin"
                "{instead}",
                "{name}：设备 `{device}` 由 PyTorch 自带，无法模拟；请选择有自己插件的厂商{instead}",
            ).format(name=vendor.name, device=vendor.device_type, instead=instead)
        )


def refuse_unfit(vendor: Vendor, kind: DeviceKind, given: Mapping[str, object]) -> None:
    """Complain of options, by their names on the command line, that don't fit the device or one another."""
    asked = [name for name, value in given.items() if value not in (None, False, "")]
    if "native" in asked and kind is not DeviceKind.EMULATED:
        raise RunError(
            Text(
                "--native works only on the emulated device; add --emulate, or leave it out",
                "--native 仅适用于仿真设备；请加 --emulate，或去掉该选项",
            )
        )
    if "native" in asked and "converted" in asked:
        raise RunError(
            Text(
                "--native and --converted can't be used together; leave one out",
                "--native 与 --converted 不能同时使用；请去掉其中一个",
            )
        )
    for name in ("strict", "card"):
        if name in asked and kind is DeviceKind.EMULATED:
            raise RunError(
                Text(
                    f"--{name} works only on the simulated device; use --sim instead of --emulate, or leave it out",
                    f"--{name} 仅适用于模拟设备；请用 --sim 代替 --emulate，或去掉该选项",
                )
            )
    machine = [f"--{name}" for name in asked if name not in ("native", "converted")]
    if machine and kind is DeviceKind.REAL:
        instead = Text("choose another vendor, or leave it out", "请选择其他厂商，或去掉该选项")
        if vendor.plugin:
            instead = Text("add --sim, or leave it out", "请加 --sim，或去掉该选项")
        options = ", ".join(machine)
        only = Text(
            f"{options}: only for a simulated or emulated device", f"{options}：仅适用于模拟或仿真设备"
        )
        raise RunError(then(only, instead))


def is_installed(vendor: Vendor) -> bool:
    """Whether this interpreter finds the vendor's plugin. The simulator's stand-in for it, which processes under
    `ferry run` find as well, does not count; a vendor without a plugin has none."""
    return bool(_places(vendor))


def _places(vendor: Vendor) -> list[Path]:
    if not vendor.plugin:
        return []
    try:
        spec = importlib.util.find_spec(vendor.plugin)
    except ValueError:  # a module that was made by hand, as the simulator makes some
        return []
    if spec is None:
        return []
    places = [
        Path(place) for place in (*filter(None, [spec.origin]), *(spec.submodule_search_locations or ()))
    ]
    is_ours = any(place.is_relative_to(Path(shims.__file__).parent) for place in places)
    return [] if is_ours else [place for place in places if place.is_dir()] or places


def missing_library(vendor: Vendor) -> str:
    """A library of the toolkit that the installed plugin needs and this machine lacks; "" if none is known to be."""
    if not vendor.emulation.toolkit:
        return ""
    table = load_machine(Path(vendor.folder))
    compiled = [pattern for pattern in table.plugin.libraries if "/" in pattern]
    if not any((place / name).is_file() for place in _places(vendor) for name in compiled):
        return ""  # not the plugin as the vendor delivers it: it knows itself what it needs
    return next((name for name in table.libraries if not _can_be_loaded(name)), "")


def _can_be_loaded(library: str) -> bool:
    searched = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), *_LIBRARY_FOLDERS]
    if any(Path(folder, library).is_file() for folder in searched):
        return True
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def is_to_be_simulated(vendor: Vendor) -> bool:
    """Whether a program has to make do without the real device; one that PyTorch has in tree can't be simulated."""
    return bool(vendor.plugin) and (not is_installed(vendor) or bool(missing_library(vendor)))


def not_installed(vendor: Vendor) -> Text:
    """What a user is told who did not ask for a simulated device."""
    if not is_installed(vendor):
        return _NOT_INSTALLED.format(plugin=vendor.plugin, device=vendor.device_type)
    toolkit = load_machine(Path(vendor.folder)).toolkit.name
    library = missing_library(vendor)
    return _LACKS_TOOLKIT.format(
        plugin=vendor.plugin, library=library, toolkit=toolkit, device=vendor.device_type
    )


_BUILT_FOR = re.compile(r"^(cuda|hip)\b[^=\n]*=\s*['\"]", re.MULTILINE)
_DRIVERS = {"cuda": ("libcuda.so.1", "cuInit", "cuDeviceGetCount"), "hip": ("libamdhip64.so", "hipInit", "hipGetDeviceCount")}  # fmt: skip


def has_gpu() -> bool:
    """Whether PyTorch would find a GPU, the variables that hide GPUs included; told without importing torch, which
    takes seconds."""
    spec = importlib.util.find_spec("torch")
    version = Path(spec.origin).with_name("version.py") if spec is not None and spec.origin else None
    if version is None or not version.is_file():
        return False
    built_for = _BUILT_FOR.findall(version.read_text("utf-8", "replace"))
    return any(_count_of(*_DRIVERS[name]) for name in built_for)


def _count_of(library: str, initialise: str, count: str) -> int:
    try:
        driver = ctypes.CDLL(library)
        found = ctypes.c_int(0)
        ready = getattr(driver, initialise)(0) == 0 and getattr(driver, count)(ctypes.byref(found)) == 0
    except (OSError, AttributeError):
        return 0
    return found.value if ready else 0
