"""List the operators that a program calls, and say which of them a vendor's device has."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import traces
from torchferry.cli import options
from torchferry.cli.output import check_reports, need, report_options, show
from torchferry.cli.program import (
    add_as_is,
    add_converted,
    add_program,
    add_torchrun,
    program_of,
)
from torchferry.errors import RunError
from torchferry.report.progress import beside_program, long_task
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, vendor_names

if TYPE_CHECKING:
    from torchferry.launch.place import Place
    from torchferry.readiness.model import Capture
    from torchferry.vendors.model import Vendor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry ops`."""
    parser.usage = (
        "ferry ops --to VENDOR[,VENDOR...] [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]\n"
        "       ferry ops --to VENDOR[,VENDOR...] [OPTIONS] --model PACKAGE.MODULE:FACTORY --input SHAPE ...\n"
        "       ferry ops --to VENDOR[,VENDOR...] [OPTIONS] (--trace | --capture) FILE"
    )
    add_program(parser, "--module")
    parser.add_argument(
        "--to",
        metavar="VENDORS",
        help="names that `ferry vendors` lists, with commas; `all`; VENDOR@VERSION asks the table of one version of "
        "the vendor's adapter. May also follow the program's own arguments, with further options of ours after it",
    )
    options.add_vendor_path(parser)
    group = parser.add_argument_group("a program")
    options.add_steps(
        group,
        "end the program after so many steps, those that a GradScaler skips not counted; `all`: let it run to "
        "its end (default: 1)",
    )
    options.add_means(
        group,
        "run on the simulated device of the first vendor instead of the CPU",
        "run on the first vendor's own plugin, on an emulated device, instead of the CPU",
    )
    add_converted(group, "with --sim or --emulate: ")
    add_as_is(group, "run the program as it is, on a device of this machine (default: cuda)")
    options.add_timeout(
        group, "end a program that takes longer, and report what was seen (default: as long as it takes)"
    )
    group = parser.add_argument_group("a model without a program")
    options.add_model(group, "8x3x224x224, 4x128:int64:ints(0,30000), mask=4x128:bool")
    options.add_switch(group, "--backward", "a training step: loss, backward pass, optimizer")
    group.add_argument(
        "--loss",
        default="",
        metavar="FUNCTION",
        help="package.module:function of output and inputs (default: the output's own loss, or gradients of ones)",
    )
    group.add_argument(
        "--optimizer", default="", metavar="NAME", help="of torch.optim, with --backward (default: SGD)"
    )
    group.add_argument(
        "--amp",
        nargs="?",
        const="float16",
        choices=("float16", "bfloat16"),
        help="under autocast; float16 with --backward also scales gradients (default: float16)",
    )
    options.add_switch(
        group,
        "--fake",
        "with shapes alone, for models that are too large to run here: nothing is computed, no time is known",
    )
    group = parser.add_argument_group("what was recorded before")
    group.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="a trace of torch.profiler (.json, .json.gz), or the table that it prints, as text",
    )
    group.add_argument(
        "--capture", type=Path, metavar="FILE", help="a .json that `ferry ops -o` wrote: judge it anew"
    )
    group = parser.add_argument_group("reports")
    options.add_outputs(group, ".json .html .xlsx .md .csv .txt")
    options.add_format(group, ("text", "json", "md", "csv", "xlsx", "html"))
    options.add_all(group, "list every operator in the text, not only those with a problem")
    options.add_check(
        group, "an operator is missing, falls back to the CPU or is limited on one of the vendors"
    )
    options.add_quiet(group, "no progress, and nothing of what the program prints to its stdout")
    options.add_language(parser)
    add_torchrun(parser)


_TO = "--to"


def run(args: argparse.Namespace) -> int:
    """Capture or read, judge, report; the answer is an exit code."""
    from torchferry.readiness.judge import judge
    from torchferry.readiness.report import REPORTS
    from torchferry.readiness.runs import ENDED_ILL

    _take_options_from_the_end(args)
    asked = _vendors(args)
    _check_sources(args)
    check_reports(REPORTS, args.output)
    capture = _capture(args, [vendor for vendor, _ in asked])
    readinesses = [judge(capture, vendor, version) for vendor, version in asked]
    folder = Path.cwd()  # of the program, whose lines pages show
    for path in args.output:
        REPORTS.write(readinesses, path, report_options(args, everything=False, folder=folder))
    limit = {"limit": None if args.all else 30} if args.format == "text" else {"everything": False}
    show(REPORTS, readinesses, args, folder=folder, **limit)
    if ENDED_ILL in capture.notes:
        return 3
    return 1 if args.check and any(readiness.problems for readiness in readinesses) else 0


def _take_options_from_the_end(args: argparse.Namespace) -> None:
    """`ferry ops train.py --epochs 1 --to ascend -o ops.html`: from our own `--to` on, all is ours."""
    places = [place for place, word in enumerate(args.program) if word == _TO or word.startswith(f"{_TO}=")]
    if args.to is not None or not places:
        return
    position = places[-1]
    args.program, ours = args.program[:position], args.program[position:]
    parser = argparse.ArgumentParser(prog="ferry ops")
    add_arguments(parser)
    for name, value in vars(parser.parse_args(ours)).items():
        if value == parser.get_default(name) or not value:
            continue
        if name == "program":
            raise RunError(
                f"{value[0]}: what is it? After --to VENDOR at the end come options of ferry ops alone"
            )
        setattr(args, name, [*getattr(args, name), *value] if isinstance(value, list) else value)


def _vendors(args: argparse.Namespace) -> list[tuple[Vendor, str]]:
    """The vendors, each with the version of its adapter that was asked for."""
    from torchferry.readiness.judge import vendor_table

    names = options.names(args.to or "")
    if names == ["all"]:
        names = list(vendor_names(args.vendor_path))
    if not names:
        raise RunError("which devices? ferry ops --to VENDOR[,VENDOR...] SCRIPT")
    parts = [name.partition("@") for name in names]
    asked = [(get_vendor(name, args.vendor_path), version) for name, _, version in parts]
    for vendor, version in asked:
        vendor_table(vendor, version)  # a version that is not known is said before the run
    return asked


def _check_sources(args: argparse.Namespace) -> None:
    sources = {
        "a program": bool(args.program),
        "--model": bool(args.model),
        "--trace": bool(args.trace),
        "--capture": bool(args.capture),
    }
    given = [name for name, is_given in sources.items() if is_given]
    if not given:
        raise RunError("which program? ferry ops --to VENDOR SCRIPT; or --model, --trace, --capture")
    if len(given) > 1:
        raise RunError(f"{' and '.join(given)}: only one of them at a time; leave the others out")
    of_models = {"--input": args.input, "--init": args.init, "--backward": args.backward, "--amp": args.amp}
    of_models |= {"--fake": args.fake, "--loss": args.loss, "--optimizer": args.optimizer}
    wrong = [name for name, value in of_models.items() if value]
    if wrong and not args.model:
        raise RunError(f"{', '.join(wrong)}: only with --model; the options of a program come after it")
    if (args.sim or args.emulate) and args.as_is:
        option = "--sim" if args.sim else "--emulate"
        raise RunError(f"{option} and --as-is: only one of them at a time; leave one out")


_CAPTURING = Text("listing the operators of the program", "正在列出程序的算子")
_CAPTURING_MODEL = Text("listing the operators of the model", "正在列出模型的算子")
_READING = Text("reading the trace", "正在读取 trace")


def _capture(args: argparse.Namespace, vendors: list[Vendor]) -> Capture:
    if args.trace:
        need("traces are read with", *traces.LIBRARIES)
        from torchferry.readiness.trace import read_trace

        with long_task(_READING, args.quiet, language=options.language_of(args)):
            return read_trace(args.trace)
    if args.capture:
        from torchferry.readiness.capture_json import read_capture

        return read_capture(args.capture)
    from torchferry.building.build import silent
    from torchferry.launch.place import build_for
    from torchferry.readiness.models.request import ModelRequest
    from torchferry.readiness.runs import capture_model, capture_program

    place = _place(args, vendors[0])
    if place.vendor is not None:
        build_for(place, silent if args.quiet else None)
    if not args.model:
        program = program_of(args, "ferry ops --to VENDOR SCRIPT [ARGUMENTS]")
        with beside_program(_CAPTURING, args.quiet, options.language_of(args)):
            return capture_program(program, place, args.steps, args.timeout, args.quiet)
    request = ModelRequest(
        args.model,
        tuple(args.input),
        init=args.init,
        backward=args.backward,
        loss=args.loss,
        optimizer=args.optimizer,
        amp=args.amp or "",
        fake=args.fake,
    )
    with beside_program(_CAPTURING_MODEL, args.quiet, options.language_of(args)):
        return capture_model(request, place if place.vendor is not None else None, args.timeout)


def _place(args: argparse.Namespace, vendor: Vendor) -> Place:
    from torchferry.emulate.plugins import refuse_without_emulation
    from torchferry.launch.place import DeviceKind, Place
    from torchferry.launch.plugin import refuse_without_plugin

    devices = args.nproc or 1
    if args.as_is:
        return Place(DeviceKind.AS_IS, as_is=args.as_is)
    if not args.sim and not args.emulate:
        return Place(DeviceKind.REFERENCE, devices=devices)
    if args.emulate:
        refuse_without_emulation(vendor)
    refuse_without_plugin(
        vendor, Text(", name that one first, or leave --sim out", "，并将其放在首位，或去掉 --sim")
    )
    kind = DeviceKind.EMULATED if args.emulate else DeviceKind.SIMULATED
    return Place(kind, vendor, options.vendor_paths(args), devices, converted=args.converted)
