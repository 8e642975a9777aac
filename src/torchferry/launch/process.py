"""What this process does in a run: reads it from the environment, decides what is left open, puts it to work."""

from __future__ import annotations

import gc
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
from torchferry.launch.environment import child_environment, torch_loads_plugins
from torchferry.launch.parts import PartSettings, parts_in
from torchferry.launch.place import Device, DeviceKind, Place
from torchferry.runtime.settings import REFERENCE, LayerSettings
from torchferry.sim.environment import SimSettings
from torchferry.text import user_language
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

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
    if environment.get(variables.SIM) == _ON:
        raise RunError(
            f"{variables.SIM}=1 does not say which device; set {variables.TO}=VENDOR as well, or use ferry run --sim"
        )
    if environment.get(variables.EMULATE) == _ON:
        raise RunError(
            f"{variables.EMULATE}=1 does not say which device; set {variables.TO}=VENDOR as well, or use ferry run "
            "--emulate"
        )
    sim = None if environment.get(variables.SIM, "") in _OFF else SimSettings.read(environment)
    emulate = None if environment.get(variables.EMULATE, "") in _OFF else EmulationSettings.read(environment)
    if sim is not None and emulate is not None:
        raise RunError(f"{variables.SIM} and {variables.EMULATE}: only one of them at a time; unset one")
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
            raise RunError(f"{variables.SIM} and {variables.EMULATE}: only one of them at a time; unset one")
        _refuse_beside_plugin(vendor, environment, "sim" if emulate in _OFF else "emulate")
        if simulate in _OFF:
            return (
                Place(DeviceKind.EMULATED, vendor).machine()
                if emulate == _ON
                else EmulationSettings.read(environment)
            )
        return (
            Place(DeviceKind.SIMULATED, vendor).machine()
            if simulate == _ON
            else SimSettings.read(environment)
        )
    choice = plugin.choose(vendor)
    if choice.kind is not DeviceKind.REAL and not plugin.is_installed(vendor):
        if choice.reason is not None:
            note = choice.reason.in_language(user_language())
            print(f"torchferry: {note}", file=sys.stderr, flush=True)
        return Place(choice.kind, vendor).machine()
    return None


def _refuse_beside_plugin(vendor: Vendor, environment: Mapping[str, str], option: str) -> None:
    if plugin.is_installed(vendor) and torch_loads_plugins(environment):
        raise RunError(
            f"PyTorch loads {vendor.plugin} by itself, and a device that is not there in truth can't be "
            f"beside it; use ferry run --{option} --to {vendor.name}"
        )


def _put_to_work(role: Role) -> None:
    if role.sim is not None:
        _simulate(role.sim)
    if role.emulate is not None:
        _emulate(role.emulate)
    device = role.sim or role.emulate
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


def _simulate(settings: SimSettings) -> None:
    from torchferry.sim.activation import activate_settings
    from torchferry.sim.summary_part import report_at_exit

    activate_settings(settings)
    if settings.summary_folder:
        report_at_exit(Path(settings.summary_folder))


def _emulate(settings: EmulationSettings) -> None:
    from torchferry.emulate.activation import activate_settings
    from torchferry.emulate.summary_part import report_at_exit

    activate_settings(settings)
    if settings.summary_folder:
        report_at_exit(Path(settings.summary_folder))


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
