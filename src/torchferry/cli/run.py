"""Run a CUDA program, unchanged, on a vendor's device: the real one if it is here, else the vendor's own plugin on an
emulated one if `ferry emulate setup` has set it up, else a simulated one."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import run_options
from torchferry.errors import InputError, OutputError, RunError
from torchferry.text import Text, user_language
from torchferry.vendors.cards import with_card
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.launch.place import Place
    from torchferry.launch.plugin import Choice
    from torchferry.launch.program import Program
    from torchferry.runtime.settings import LayerSettings
    from torchferry.sim.summary import Summary
    from torchferry.vendors.model import Vendor

add_arguments = run_options.add_arguments

_SIGNALS = 128  # as shells count: exit codes above it are signals


def run(args: argparse.Namespace) -> int:
    """Run the program, or only say what would be changed for it; the answer is an exit code."""
    vendor = _vendor(args)
    choice = _choice(args, vendor)
    _refuse_options_of_others(args, vendor, choice)
    program = _program(args)
    if args.summary:
        _check_writable(args.summary)
    place = _place(args, vendor, choice)
    if args.explain:
        code = _explain(args, place)
        if code or program is None:
            return code
    if program is None:
        raise RunError("what is to be run? ferry run --to VENDOR (SCRIPT | -m MODULE)")
    if choice.reason is not None:
        _say(args, choice.reason)
    with _wishes_in_the_environment(args):
        code = _run_program(args, program, place)
    _explain_exit(args, code, vendor)
    return code


def _vendor(args: argparse.Namespace) -> Vendor:
    from torchferry.launch import variables

    name = args.to or os.environ.get(variables.TO)
    if not name:
        raise RunError(
            f"which device? ferry run --to VENDOR SCRIPT, options come before the script; or set {variables.TO}"
        )
    vendor = get_vendor(name, args.vendor_path)
    if args.sim and not vendor.plugin:
        raise RunError(
            f"{vendor.name}: PyTorch itself has the device `{vendor.device_type}`, so it can't be simulated; choose a "
            "vendor with a plugin of its own, or leave --sim out on a machine that has the device"
        )
    return with_card(vendor, args.card)


def _choice(args: argparse.Namespace, vendor: Vendor) -> Choice:
    """The device that was asked for; else the one that there is, with the reason for it."""
    from torchferry.launch.place import DeviceKind
    from torchferry.launch.plugin import Choice, choose

    if args.sim:
        return Choice(DeviceKind.SIMULATED)
    if args.emulate:
        return Choice(DeviceKind.EMULATED)
    return choose(vendor, may_emulate=not (args.strict or args.card))


def _refuse_options_of_others(args: argparse.Namespace, vendor: Vendor, choice: Choice) -> None:
    from torchferry.launch.place import DeviceKind

    if args.native and choice.kind is not DeviceKind.EMULATED:
        raise RunError("--native: only for the emulated device; add --emulate, or leave it out")
    if args.native and args.converted:
        raise RunError("--native and --converted: only one of them at a time; leave one out")
    if args.strict and choice.kind is DeviceKind.EMULATED:
        raise RunError(
            "--strict: only for the simulated device; take --sim in place of --emulate, or leave it out"
        )
    if args.card and choice.kind is DeviceKind.EMULATED:
        raise RunError(
            "--card: only for the simulated device; take --sim in place of --emulate, or leave it out"
        )
    given = [
        f"--{name}"
        for name in ("devices", "memory", "card", "strict", "summary")
        if getattr(args, name) not in (None, False)
    ]
    if given and choice.kind is DeviceKind.REAL:
        instead = (
            "choose another vendor, or leave it out" if not vendor.plugin else "add --sim, or leave it out"
        )
        raise RunError(f"{', '.join(given)}: only for a simulated or emulated device; {instead}")


def _program(args: argparse.Namespace) -> Program | None:
    from torchferry.launch.program import Program

    if args.script is None:
        return None
    if not args.module and not os.path.exists(args.script):
        raise InputError(f"{args.script}: no such script; -m runs a module by name")
    return Program(args.script, args.module, tuple(args.arguments), run_options.torchrun_options(args))


def _layer(args: argparse.Namespace, vendor: Vendor) -> LayerSettings | None:
    from torchferry.runtime.settings import LayerSettings, TypeChecks

    chosen = run_options.options_of_the_layer(args)
    if not args.converted and not args.native:
        checks = TypeChecks(args.type_checks or TypeChecks.BOTH)
        return LayerSettings(
            vendor.name, _vendor_paths(args), checks, args.capability or "", args.cuda_version or ""
        )
    if chosen:
        why = (
            "--converted, where nothing is redirected"
            if args.converted
            else "--native, where the vendor redirects"
        )
        raise RunError(f"{', '.join(chosen)}: not with {why}; leave one out")
    return None


def _place(args: argparse.Namespace, vendor: Vendor, choice: Choice) -> Place:
    from torchferry.launch.place import Place

    place = Place(
        choice.kind,
        vendor,
        _vendor_paths(args),
        args.devices,
        args.memory,
        converted=args.converted,
        redirection=_layer(args, vendor),
        native=args.native,
        strict=args.strict,
    )
    place.machine()  # if there can be none, that is all to be said
    return place


def _vendor_paths(args: argparse.Namespace) -> tuple[str, ...]:
    return tuple(str(path.resolve()) for path in args.vendor_path)


def _check_writable(path: Path) -> None:
    """Say so before the run, not after it."""
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: a summary can't be written there; name a file in a folder that exists")


def _explain(args: argparse.Namespace, place: Place) -> int:
    """The table on stdout; on stderr if a program is to have stdout for itself."""
    from torchferry.launch.environment import environment_at
    from torchferry.launch.explain import explain

    stream = None if args.script is None else sys.stderr.fileno()
    return explain(environment_at(place), stream).exit_code


@contextmanager
def _wishes_in_the_environment(args: argparse.Namespace) -> Iterator[None]:
    """How the program's processes are to speak about a crash: they inherit our environment."""
    from torchferry.launch import variables

    wishes = {variables.DIAGNOSIS: "0"} if args.no_diagnosis or args.quiet else {}
    if args.lang:
        wishes["TORCHFERRY_LANG"] = args.lang
    before = {name: os.environ.get(name) for name in wishes}
    os.environ.update(wishes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _explain_exit(args: argparse.Namespace, code: int, vendor: Vendor) -> None:
    """A program that a signal has ended could not say anything itself."""
    if code <= _SIGNALS or args.no_diagnosis:
        return
    from torchferry.explain.explaining import explain_exit

    said = explain_exit(code, vendor)
    if said is not None:
        _say(args, said)


def _run_program(args: argparse.Namespace, program: Program, place: Place) -> int:
    from torchferry.launch.place import DeviceKind

    if place.kind is DeviceKind.REAL:
        return _run_on_plugin(args, program, place)
    from torchferry.building.progress import silent
    from torchferry.launch.simulated import run_simulated

    summary = run_simulated(program, place, silent if args.quiet else None)
    _show(args, summary)
    return summary.outcome.exit_code


def _run_on_plugin(args: argparse.Namespace, program: Program, place: Place) -> int:
    from torchferry.launch.environment import environment_at
    from torchferry.launch.supervise import run_supervised
    from torchferry.sim.summary import LEFT_RUNNING

    ending = run_supervised(program.command(), environment_at(place), patient=True)
    if ending.left_running:
        _say(args, LEFT_RUNNING.format(count=ending.left_running))
    return ending.exit_code


def _show(args: argparse.Namespace, summary: Summary) -> None:
    from torchferry.files.aside import write_whole
    from torchferry.sim.summary import to_json, to_text

    if args.summary:
        write_whole(args.summary, to_json(summary).encode())
    if not args.quiet:
        print(to_text(summary, args.lang or user_language()), file=sys.stderr)


def _say(args: argparse.Namespace, line: Text) -> None:
    if not args.quiet:
        print(f"torchferry: {line.in_language(args.lang or user_language())}", file=sys.stderr, flush=True)
