"""The options of `ferry record`; those of where and how a program runs serve its sister commands as well."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options, run_options
from torchferry.errors import InputError, RunError
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.launch.place import Place
    from torchferry.launch.program import Program

DEFAULT_OUTPUT = "record.h5"
PHASES = ("forward", "backward", "optimizer")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.usage = (
        "ferry record [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]\n"
        "       ferry record info FILE\n"
        "       ferry record convert FILE (--npy DIR | --txt DIR)\n"
        "       ferry record kernels TRACE [--of FILE]"
    )
    parser.epilog = (
        "Two records can be compared if both runs had the same data, weights and random numbers: a program that sets "
        "no seed itself needs --seed. torch.compile is switched off, so that every operator shows. `info`, "
        "`convert` and `kernels` come first; a script of that name is run as ./info, or after --."
    )
    add_program_arguments(parser)
    _add_what(parser)
    _add_which(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(DEFAULT_OUTPUT),
        metavar="FILE",
        help="the record; with several processes each writes its own: FILE.rank0.h5, FILE.rank1.h5 ... A record of "
        f"an earlier run of that name is replaced (default: {DEFAULT_OUTPUT})",
    )
    parser.add_argument(
        "--replay",
        type=Path,
        metavar="GOLDEN",
        help="give each operator the inputs that it had in this record, and record what it makes of them here: own "
        "errors, none that are inherited",
    )
    add_place_arguments(parser)


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    """The program; what follows it is handed to it."""
    parser.allow_abbrev = False  # argparse would look for abbreviations among the program's own options, too
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help=argparse.SUPPRESS)
    parser.add_argument(
        "-m", dest="is_module", action="store_true", help="the program is a module, as in python -m"
    )


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--tensors",
        action="store_true",
        help="keep the elements of every tensor, equal ones once: what `ferry compare` and `ferry replay` need "
        "(default)",
    )
    group.add_argument(
        "--stats",
        action="store_true",
        help="keep statistics and a checksum of each tensor: small and quick, for many steps",
    )
    group.add_argument(
        "--inputs",
        action="store_true",
        help="keep the elements of inputs, and statistics of outputs",
    )


def _add_which(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is recorded")
    group.add_argument(
        "--steps",
        type=options.steps,
        default=1,
        metavar="N",
        help="so many; a step ends when each optimizer has stepped, or one of them would step again; the program is "
        "ended after the last. `all`: to the program's own end (default: 1)",
    )
    group.add_argument(
        "--from",
        dest="first_step",
        type=options.at_least_one,
        default=1,
        metavar="STEP",
        help="the first step that is recorded (default: 1)",
    )
    group.add_argument(
        "--whole",
        action="store_true",
        help="record from `import torch` on, set-up included: for programs that call no module (default: from the "
        "first call of a module with parameters)",
    )
    add_selection(group)
    group.add_argument("--rank", type=_rank, metavar="R", help="only the process of this rank (default: all)")
    group.add_argument(
        "--keep-going", action="store_true", help="let the program go on, unrecorded, after the last step"
    )


def add_selection(group: argparse._ArgumentGroup) -> None:
    """Which operators, of all that are called."""
    group.add_argument(
        "--module",
        dest="modules",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only operators of modules whose path fits, as layer1.*, *.attn; repeatable",
    )
    group.add_argument(
        "--op",
        dest="operators",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only operators whose name fits, as aten::convolution*, mm, *norm*; repeatable",
    )
    group.add_argument(
        "--phase",
        dest="phases",
        action="append",
        default=[],
        choices=PHASES,
        help="only operators of the forward pass, the backward pass or the optimizer; repeatable",
    )


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Where and how the program runs."""
    group = parser.add_argument_group(
        "where the program runs (default: on this machine as it is; without a GPU, the CPU stands for CUDA)"
    )
    options.add_vendor_device(parser, group)
    group.add_argument(
        "--converted",
        action="store_true",
        help="with --to: the program is converted already, CUDA's names keep their meaning",
    )
    group.add_argument(
        "--as-is",
        nargs="?",
        const="cuda",
        default="",
        metavar="DEVICE",
        help="leave the program alone; it computes on this device by itself (default: cuda)",
    )
    group.add_argument(
        "--devices",
        type=options.at_least_one,
        metavar="N",
        help="devices that the program sees where they are simulated or the CPU stands for them (default: one, with "
        "--nproc one for each process)",
    )
    group.add_argument(
        "--seed",
        type=options.seed,
        metavar="N",
        help="of every generator, set at `import torch` (default: none is set)",
    )
    group.add_argument(
        "--timeout",
        type=options.seconds,
        metavar="SECONDS",
        help="end a program that takes longer, and keep what was recorded (default: as long as it takes)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no remarks and no progress on stderr")
    options.add_language(parser)
    run_options.add_torchrun_arguments(parser)


def _rank(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no rank; the first is 0")
    return int(text)


def program_of(args: argparse.Namespace, command: str) -> Program:
    """The program that the command line names."""
    from torchferry.launch.program import Program

    words = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not words:
        raise RunError(f"which program? {command} [OPTIONS] SCRIPT [ARGUMENTS]")
    if not args.is_module and not os.path.exists(words[0]):
        raise InputError(f"{words[0]}: no such script; -m runs a module by name")
    return Program(words[0], args.is_module, tuple(words[1:]), run_options.torchrun_options(args))


def place_of(args: argparse.Namespace) -> Place:
    """Where it runs."""
    from torchferry.launch import plugin

    vendor = get_vendor(args.to, args.vendor_path) if args.to else None
    return plugin.place_of(
        vendor,
        args.sim,
        args.emulate,
        args.as_is,
        args.converted,
        vendor_paths=tuple(str(path.resolve()) for path in args.vendor_path),
        devices=args.devices or args.nproc or 1,
    )
