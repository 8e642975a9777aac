"""What this process does in a run: reads it from the environment, decides what is left open, puts it to work."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import variables
from torchferry.emulate.environment import EmulationSettings
from torchferry.errors import RunError
from torchferry.launch import plugin
from torchferry.launch.autoload import autoload
from torchferry.launch.environment import child_environment, torch_loads_plugins
from torchferry.launch.parts import PartSettings, parts_in
from torchferry.launch.place import Device, DeviceKind, Place
from torchferry.runtime.settings import REFERENCE, LayerSettings
from torchferry.sim.environment import SimSettings
from torchferry.text import Text, user_language
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

if TYPE_CHECKING:
    from torchferry.runtime.host.devices import Placement

_OFF = ("", "0")
_ON = "1"


@dataclass(frozen=True)
class Role:
    """What a process does besides running its program."""

    sim: SimSettings | None = None
    layer: LayerSettings | None = None
    parts: tuple[PartSettings, ...] = ()
    emulate: EmulationSettings | None = None


_taken: list[Role] = []  # at most one: a process keeps its role


def take_part(environment: MutableMapping[str, str]) -> Role:
    """Do what the environment asks for; what had to be decided is put into it, for the processes started later."""
    if _taken:
        return _taken[0]
    if environment.get(variables.TO) and not environment.get(variables.LAYER):
        _decide(environment)
    role = role_in(environment)
    with _nothing_collected():
        _put_to_work(role)
    _taken.append(role)
    return role


def role_in(environment: Mapping[str, str]) -> Role:
    """What the variables say, once everything is decided."""
    for variable, option in ((variables.SIM, "--sim"), (variables.EMULATE, "--emulate")):
        if environment.get(variable) == _ON:
            raise RunError(
                Text(
                    f"{variable}=1 does not name a device; set {variables.TO}=VENDOR as well, or use ferry run "
                    f"{option}",
                    f"{variable}=1 没有指定设备；请同时设置 {variables.TO}=VENDOR，或使用 ferry run {option}",
                )
            )
    sim = None if environment.get(variables.SIM, "") in _OFF else SimSettings.read(environment)
    emulate = None if environment.get(variables.EMULATE, "") in _OFF else EmulationSettings.read(environment)
    if sim is not None and emulate is not None:
        raise RunError(
            Text(
                f"{variables.SIM} and {variables.EMULATE} can't be set together; unset one",
                f"{variables.SIM} 与 {variables.EMULATE} 不能同时设置；请取消其中一个",
            )
        )
    return Role(sim, LayerSettings.read(environment), parts_in(environment), emulate)


def _decide(environment: MutableMapping[str, str]) -> None:
    """From the name of a vendor to its real plugin, or to a typical server of simulated ones."""
    vendor = get_vendor(environment[variables.TO])
    device = _device_for(vendor, environment)
    kept = {name: environment[name] for name in variables.PARTS if name in environment}
    decided = child_environment(environment, vendor, device, LayerSettings(vendor.name), kept)
    environment.pop(variables.TO)
    environment.pop(variables.EMULATE, None)
    environment.update(decided)


def _device_for(vendor: Vendor, environment: Mapping[str, str]) -> Device | None:
    """What a user's variables ask for; where they leave it open, what there is."""
    simulate, emulate = (environment.get(name, "") for name in (variables.SIM, variables.EMULATE))
    if simulate not in _OFF or emulate not in _OFF:
        if simulate not in _OFF and emulate not in _OFF:
            raise RunError(
                Text(
                    f"{variables.SIM} and {variables.EMULATE} can't be set together; unset one",
                    f"{variables.SIM} 与 {variables.EMULATE} 不能同时设置；请取消其中一个",
                )
            )
        if plugin.is_installed(vendor) and torch_loads_plugins(environment):
            option = "sim" if emulate in _OFF else "emulate"
            raise RunError(
                Text(
                    f"PyTorch loads {vendor.plugin} automatically, which excludes a simulated or emulated device; use "
                    f"ferry run --{option} --to {vendor.name}",
                    f"PyTorch 会自动加载 {vendor.plugin}，因此无法再使用模拟或仿真设备；请使用 ferry run --{option} "
                    f"--to {vendor.name}",
                )
            )
        if _ON in (simulate, emulate):
            kind = DeviceKind.EMULATED if simulate in _OFF else DeviceKind.SIMULATED
            return Place(kind, vendor).machine()
        return (EmulationSettings if simulate in _OFF else SimSettings).read(environment)
    choice = plugin.choose(vendor)
    if choice.kind is not DeviceKind.REAL and not plugin.is_installed(vendor):
        if choice.reason is not None:
            note = choice.reason.in_language(user_language())
            print(f"torchferry: {note}", file=sys.stderr, flush=True)
        return Place(choice.kind, vendor).machine()
    return None


def _put_to_work(role: Role) -> None:
    device = role.sim or role.emulate
    if device is not None:
        if isinstance(device, SimSettings):
            activation, summary = "torchferry.sim.activation", "torchferry.sim.summary"
        else:
            activation, summary = "torchferry.emulate.activation", "torchferry.emulate.activation"
        importlib.import_module(activation).activate_settings(device)
        if device.summary_folder:
            importlib.import_module(summary).report_at_exit(Path(device.summary_folder))
    if role.layer is not None:
        _lay_over(role)
    elif device is not None:
        _explain_crashes(device.vendor, device.vendor_paths)
    for part in role.parts:
        part.start()


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Without the garbage collector: what is made here stays, and looking through all of PyTorch takes long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _lay_over(role: Role) -> None:
    from torchferry.observe import torchvision_operators
    from torchferry.runtime import activate

    settings = role.layer
    assert settings is not None
    if settings.vendor == REFERENCE:
        torchvision_operators.install()
        activate(settings, _compute_as_cuda(role))
        _explain_crashes()
    else:
        activate(settings)
        _explain_crashes(settings.vendor, settings.vendor_paths)


def _explain_crashes(vendor: str = "", paths: Iterable[str] = ()) -> None:
    from torchferry.launch import crash

    crash.explain_in_future(get_vendor(vendor, tuple(map(Path, paths))) if vendor else None)


def _compute_as_cuda(role: Role) -> Placement | None:
    """What the compiled half adds to the reference, if it is there."""
    from torchferry.sim import build
    from torchferry.sim.reference import compute_as_cuda, placement

    if not (all(part.may_build for part in role.parts) or build.is_built()):
        return None
    compute_as_cuda()
    return None if any(part.places_tensors for part in role.parts) else placement()


_SEVERAL = Text(
    "found several accelerators ({found}), so nothing was changed; set {variable} to one of {known}",
    "发现多种加速器（{found}），因此未做任何更改；请将 {variable} 设为其中之一：{known}",
)
_NO_DEVICE = Text(
    "found neither CUDA nor a vendor's plugin, so nothing was changed; set {variable} to one of {known}",
    "既没有 CUDA，也没有厂商插件，因此未做任何更改；请将 {variable} 设为其中之一：{known}",
)


def take_part_unlaunched() -> None:
    """What `import torchferry.auto` does in a program that nothing else has started on a vendor's device: what the
    environment asks for; where it asks for nothing, look for a device. Doing it again does nothing."""
    import torch

    if not any(os.environ.get(name) for name in (variables.TO, variables.LAYER, variables.SIM)):
        if torch.cuda.is_available():
            return
        found = [vendor.name for vendor in map(get_vendor, vendor_names()) if _is_here(vendor)]
        if len(found) != 1:
            if multiprocessing.parent_process() is None:  # else that one has said so already
                said = (_SEVERAL if found else _NO_DEVICE).format(
                    found=", ".join(found), variable=variables.TO, known=", ".join(found or vendor_names())
                )
                print(f"torchferry.auto: {said.in_language(user_language())}", file=sys.stderr)
            return
        os.environ[variables.TO] = found[0]
    autoload()


def _is_here(vendor: Vendor) -> bool:
    """A vendor with a plugin by its plugin, one that PyTorch knows itself by its device."""
    if vendor.plugin:
        return plugin.is_installed(vendor)
    import torch

    module = getattr(torch, vendor.device_type, None)
    return module is not None and bool(module.is_available())
