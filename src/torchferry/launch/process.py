"""What this process does in a run: reads it from the environment, decides what is left open, puts it to work."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.emulate.environment import EmulationSettings
from torchferry.emulate.environment import settings_in as emulation_in
from torchferry.errors import RunError
from torchferry.launch import plugin, variables
from torchferry.launch.environment import child_environment, torch_loads_plugins
from torchferry.launch.place import Device, DeviceKind, Place
from torchferry.runtime.settings import REFERENCE, LayerSettings, layer_settings_in
from torchferry.sim.environment import SimSettings, settings_in
from torchferry.text import user_language
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.runtime.host.placement import Placement

# What tells a part of a run what to do -> who reads it.
_SETTINGS = (
    (variables.PROVE, "torchferry.prove.settings", "proof_settings_in"),
    (variables.OPS, "torchferry.ops.capture.settings", "capture_settings_in"),
    (variables.RECORD, "torchferry.accuracy.record.settings", "record_settings_in"),
    (variables.PROFILE, "torchferry.perf.collect.settings", "profile_settings_in"),
)
_OFF = ("", "0")
_ON = "1"


@dataclass(frozen=True)
class Role:
    """What a process does besides running its program."""

    sim: SimSettings | None = None
    layer: LayerSettings | None = None
    prove: bool = False
    ops: bool = False
    record: bool = False
    profile: bool = False
    emulate: EmulationSettings | None = None


_taken: list[Role] = []  # at most one: a process keeps its role


def take_part(environment: MutableMapping[str, str]) -> Role:
    """Do what the environment asks for; what had to be decided is put into it, for the processes started later."""
    if _taken:
        return _taken[0]
    if environment.get(variables.TO) and not environment.get(variables.LAYER):
        _decide(environment)
    role = role_in(environment)
    _refuse_unreadable(environment)
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
    sim = None if environment.get(variables.SIM, "") in _OFF else _sim_in(environment)
    emulate = None if environment.get(variables.EMULATE, "") in _OFF else _emulation_in(environment)
    if sim is not None and emulate is not None:
        raise RunError(f"{variables.SIM} and {variables.EMULATE}: only one of them at a time; unset one")
    layer = _layer_in(environment)
    prove, ops, record, profile = (
        name in environment for name in (variables.PROVE, variables.OPS, variables.RECORD, variables.PROFILE)
    )
    return Role(sim, layer, prove, ops, record, profile, emulate)


def _decide(environment: MutableMapping[str, str]) -> None:
    """From the name of a vendor to its real plugin, or to a typical server of simulated ones."""
    vendor = get_vendor(environment[variables.TO])
    device = _device_for(vendor, environment)
    asked_too = (variables.PROVE, variables.RECORD, variables.PROFILE)
    kept = {name: environment[name] for name in asked_too if name in environment}
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
                Place(DeviceKind.EMULATED, vendor).machine() if emulate == _ON else _emulation_in(environment)
            )
        return Place(DeviceKind.SIMULATED, vendor).machine() if simulate == _ON else _sim_in(environment)
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


def _sim_in(environment: Mapping[str, str]) -> SimSettings | None:
    try:
        return settings_in(environment)
    except (ValueError, TypeError):
        raise RunError(
            f"{variables.SIM} can't be read; it is 1, or what ferry run sets it to: unset it"
        ) from None


def _emulation_in(environment: Mapping[str, str]) -> EmulationSettings | None:
    try:
        return emulation_in(environment)
    except (ValueError, TypeError):
        raise RunError(
            f"{variables.EMULATE} can't be read; it is 0, 1, or what ferry run sets it to: unset it"
        ) from None


def _layer_in(environment: Mapping[str, str]) -> LayerSettings | None:
    try:
        return layer_settings_in(environment)
    except (ValueError, TypeError):
        raise RunError(
            f"{variables.LAYER} can't be read; only ferry run sets it: unset it, and set {variables.TO}=VENDOR"
        ) from None


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
    if role.prove:
        from torchferry.prove.recording import start_from_environment

        start_from_environment(os.environ)
    if role.ops:
        from torchferry.ops.capture.program import capture_from_environment

        capture_from_environment(os.environ)
    if role.record:
        from torchferry.accuracy.record.program import start_from_environment as record_from_environment

        record_from_environment(os.environ)
    if role.profile:
        from torchferry.perf.collect.program import start_from_environment as profile_from_environment

        profile_from_environment(os.environ)


def _refuse_unreadable(environment: Mapping[str, str]) -> None:
    """What the parts of a run are told, before any of them begins."""
    for variable, module, function in _SETTINGS:
        if variable in environment:
            read = getattr(importlib.import_module(module), function)
            try:
                read(environment)
            except (ValueError, TypeError, KeyError, AttributeError):
                raise RunError(f"{variable} can't be read; only ferry sets it: unset it") from None


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
    """What the compiled half adds to the reference, if it is there. A capture of operators tells by itself which
    tensors would be on a device."""
    from torchferry.sim import build
    from torchferry.sim.reference import compute_as_cuda, placement

    may_build = not (role.ops or role.record or role.profile)
    if not (may_build or build.is_built()):
        return None
    compute_as_cuda()
    return None if role.ops else placement()
