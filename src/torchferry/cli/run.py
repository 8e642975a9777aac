"""Run a CUDA program, unchanged, on a vendor's device: the real one if it is here, else the vendor's own plugin on an
emulated one if `ferry emulate setup` has set it up, else a simulated one."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import check_writable, say
from torchferry.cli.program import add_converted, add_program, add_torchrun, program_of, words_of
from torchferry.errors import RunError
from torchferry.vendors.registry import get_vendor, with_card

if TYPE_CHECKING:
    from torchferry.launch.place import DeviceKind, Place
    from torchferry.sim.summary import RunSummary
    from torchferry.vendors.model import Vendor

_OF_THE_LAYER = ("--type-checks", "--capability", "--cuda-version", "--explain")
_OF_SOME_DEVICES = ("native", "converted", "devices", "memory", "card", "strict", "summary")
_SIGNALS = 128  # as shells count: exit codes above it are signals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry run`."""
    parser.usage = "ferry run --to VENDOR [OPTIONS] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    add_program(parser, "--module")
    options.add_to(parser, "a name that `ferry vendors` lists (default: the variable TORCHFERRY_TO)")
    options.add_vendor_path(parser)
    options.add_quiet(parser, "no summary, no progress and no remarks on stderr")
    options.add_switch(parser, "--no-diagnosis", "do not say what a crash means, after its traceback")
    options.add_steps(
        parser, "end the program after so many steps (default: it runs to its end)", default=None
    )
    options.add_language(parser)
    group = parser.add_argument_group("what CUDA's names mean")
    add_converted(group)
    group.add_argument(
        "--type-checks",
        choices=("both", "vendor"),
        help="what device.type equals: `cuda` and the vendor's type (default), or the vendor's alone",
    )
    group.add_argument(
        "--capability",
        metavar="X.Y",
        help="what get_device_capability answers (default: 8.0, a GPU with bfloat16)",
    )
    group.add_argument(
        "--cuda-version", metavar="X.Y", help="what torch.version.cuda says (default: as it is)"
    )
    options.add_switch(
        group, "--explain", "list what is redirected; needs no SCRIPT, runs it if there is one"
    )
    group = parser.add_argument_group("a simulated or emulated device")
    options.add_means(
        group,
        "simulate, even if the vendor's plugin is installed",
        "run the vendor's own plugin, on an emulated device; `ferry emulate setup` sets it up",
    )
    options.add_switch(
        group,
        "--native",
        "with --emulate: CUDA's names mean what the vendor's own migration makes of them, not what TorchFerry does",
    )
    options.add_devices(group, "devices (default: as many as a typical server of the vendor has)")
    options.add_memory(
        group, "memory of each: 32GiB, 512MiB, a number of bytes (default: that of a typical one)"
    )
    group.add_argument(
        "--card",
        metavar="NAME",
        help="with --sim: another of the vendor's cards, as `ferry vendors NAME` lists them",
    )
    options.add_switch(
        group, "--strict", "with --sim: an operator that the vendor lacks raises, never runs on the CPU"
    )
    group.add_argument(
        "--summary", type=Path, metavar="FILE.json", help="write what the run used of the device here"
    )
    add_torchrun(parser)


def run(args: argparse.Namespace) -> int:
    """Run the program, or only say what would be changed for it; the answer is an exit code."""
    from torchferry import variables
    from torchferry.building.build import silent
    from torchferry.launch import plugin
    from torchferry.launch.program import run_at
    from torchferry.settings import environment_kept

    name = args.to or os.environ.get(variables.TO)
    if not name:
        raise RunError(
            f"which device? ferry run --to VENDOR SCRIPT, options come before the script; or set {variables.TO}"
        )
    vendor = with_card(get_vendor(name, args.vendor_path), args.card)
    choice = plugin.choose(vendor, args.sim, args.emulate, may_emulate=not (args.strict or args.card))
    plugin.refuse_unfit(vendor, choice.kind, {name: getattr(args, name) for name in _OF_SOME_DEVICES})
    if words_of(args) or not args.explain:
        program = program_of(args, "ferry run --to VENDOR (SCRIPT | -m MODULE)")
    if args.summary:
        check_writable(args.summary)
    place = _place(args, vendor, choice.kind)
    if args.explain:
        from torchferry.launch.environment import environment_at
        from torchferry.launch.explain import explain

        # on stdout; on stderr if a program is to have stdout for itself
        stream = None if not words_of(args) else sys.stderr.fileno()
        code = explain(environment_at(place), stream).exit_code
        if code or not words_of(args):
            return code
    if choice.reason is not None:
        say(args, "torchferry", choice.reason)
    # How the program's processes are to speak about a crash: they inherit our environment.
    wishes = {variables.DIAGNOSIS: "0"} if args.no_diagnosis or args.quiet else {}
    if args.lang:
        wishes["TORCHFERRY_LANG"] = args.lang
    with environment_kept():
        os.environ.update(wishes)
        summary = run_at(place, program, silent if args.quiet else None, args.steps)
        _show(args, place, summary)
    code = summary.outcome.exit_code
    if code > _SIGNALS and not args.no_diagnosis:  # the program could not say anything itself
        from torchferry.explanation.explaining import explain_exit

        said = explain_exit(code, vendor)
        if said is not None:
            say(args, "torchferry", said)
    return code


def _place(args: argparse.Namespace, vendor: Vendor, kind: DeviceKind) -> Place:
    from torchferry.launch.place import Place
    from torchferry.runtime.settings import LayerSettings, TypeChecks

    chosen = [name for name in _OF_THE_LAYER if getattr(args, name[2:].replace("-", "_"))]
    paths, layer = options.vendor_paths(args), None
    if not args.converted and not args.native:
        checks = TypeChecks(args.type_checks or TypeChecks.BOTH)
        layer = LayerSettings(vendor.name, paths, checks, args.capability or "", args.cuda_version or "")
    elif chosen:
        converted, native = "--converted, where nothing is redirected", "--native, where the vendor redirects"
        why = converted if args.converted else native
        raise RunError(f"{', '.join(chosen)}: not with {why}; leave one out")
    place = Place(
        kind,
        vendor,
        paths,
        args.devices,
        args.memory,
        converted=args.converted,
        redirection=layer,
        native=args.native,
        strict=args.strict,
    )
    place.machine()  # if there can be none, that is all to be said
    return place


def _show(args: argparse.Namespace, place: Place, summary: RunSummary) -> None:
    from torchferry.files.aside import write_whole
    from torchferry.launch.place import DeviceKind
    from torchferry.sim.summary import LEFT_RUNNING, to_json, to_text

    if place.kind is DeviceKind.REAL:
        if summary.outcome.left_running:
            say(args, "torchferry", LEFT_RUNNING.format(count=summary.outcome.left_running))
        return
    if args.summary:
        write_whole(args.summary, to_json(summary).encode())
    if not args.quiet:
        print(to_text(summary, options.language_of(args)), file=sys.stderr)
