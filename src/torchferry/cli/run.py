"""Run a converted program on a simulated accelerator: the vendor's device name and limits, computed on the CPU."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.errors import InputError, OutputError, RunError
from torchferry.sim.environment import parse_memory, settings_for
from torchferry.text import user_language
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.sim.launch import Program
    from torchferry.sim.summary import Summary

# torchrun's options that are handed on as they are -> whether they say where the processes meet
_TORCHRUN = {
    "nnodes": True,
    "node-rank": True,
    "master-addr": True,
    "master-port": True,
    "rdzv-backend": True,
    "rdzv-endpoint": True,
    "rdzv-id": True,
    "rdzv-conf": True,
    "local-addr": True,
    "max-restarts": False,
    "monitor-interval": False,
    "log-dir": False,
    "redirects": False,
    "tee": False,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry run`."""
    parser.usage = "ferry run --sim --to VENDOR [OPTIONS] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    parser.add_argument("script", metavar="SCRIPT", help="the program; what follows it is handed to it")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help=argparse.SUPPRESS)
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module, as in python -m")
    parser.add_argument("--sim", action="store_true", help="on the simulated device (needed for now)")
    parser.add_argument("--to", metavar="VENDOR", help="a name that `ferry vendors` lists")
    options.add_vendor_path(parser)
    parser.add_argument(
        "--devices",
        type=_at_least_one,
        metavar="N",
        help="simulated devices (default: as many as a typical server of the vendor has)",
    )
    parser.add_argument(
        "--memory",
        type=parse_memory,
        metavar="SIZE",
        help="memory of each: 32GiB, 512MiB, a number of bytes (default: that of a typical one)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="an operator that the vendor lacks raises, never runs on the CPU",
    )
    parser.add_argument(
        "--summary", type=Path, metavar="FILE.json", help="write what the run used of the device here"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary and no progress on stderr")
    options.add_language(parser)
    _add_torchrun_arguments(parser)


def _add_torchrun_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several processes, through torchrun")
    group.add_argument(
        *_spellings("nproc", "nproc-per-node"), type=_at_least_one, metavar="N", help="processes"
    )
    for name in _TORCHRUN:
        group.add_argument(*_spellings(name), dest=f"torchrun {name}", metavar="X", help="handed to torchrun")


def _spellings(*names: str) -> list[str]:
    """torchrun takes dashes and underscores."""
    return list(dict.fromkeys(f"--{form}" for name in names for form in (name, name.replace("-", "_"))))


def _at_least_one(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return value


def run(args: argparse.Namespace) -> int:
    """Run the program; the answer is its exit code."""
    from torchferry.sim.build_progress import silent
    from torchferry.sim.launch import launch

    vendor = _vendor(args)
    program = _program(args)
    if args.summary:
        _check_writable(args.summary)
    paths = tuple(str(path.resolve()) for path in args.vendor_path)
    settings = settings_for(vendor, args.devices, args.memory, args.strict, paths)
    summary = launch(program, vendor, settings, silent if args.quiet else None)
    _show(args, summary)
    return summary.outcome.exit_code


def _vendor(args: argparse.Namespace) -> Vendor:
    if not args.sim:
        raise RunError(
            "only the simulated device can be run on in this version: ferry run --sim --to VENDOR SCRIPT; on the "
            "vendor's machine, start the converted program with python"
        )
    if not args.to:
        raise RunError("which device? ferry run --sim --to VENDOR SCRIPT; options come before the script")
    vendor = get_vendor(args.to, args.vendor_path)
    if not vendor.plugin:
        raise RunError(
            f"{vendor.name}: PyTorch itself has the device `{vendor.device_type}`, so it can't be simulated; choose a "
            "vendor with a plugin of its own"
        )
    return vendor


def _program(args: argparse.Namespace) -> Program:
    from torchferry.sim.launch import Program

    if not args.module and not os.path.exists(args.script):
        raise InputError(f"{args.script}: no such script; -m runs a module by name")
    return Program(args.script, args.module, tuple(args.arguments), _torchrun_options(args))


def _torchrun_options(args: argparse.Namespace) -> tuple[str, ...] | None:
    given = {name: getattr(args, f"torchrun {name}") for name in _TORCHRUN}
    chosen = {name: value for name, value in given.items() if value is not None}
    if args.nproc is None and not chosen:
        return None
    # a port of torchrun's choice, unless the user says where the processes meet
    alone = [] if any(_TORCHRUN[name] for name in chosen) else ["--standalone"]
    values = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    return (*alone, "--nproc-per-node", str(args.nproc or 1), *values)


def _check_writable(path: Path) -> None:
    """Say so before the run, not after it."""
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: a summary can't be written there; name a file in a folder that exists")


def _show(args: argparse.Namespace, summary: Summary) -> None:
    from torchferry.sim.summary import to_json, to_text

    if args.summary:
        aside = args.summary.with_name(f".{args.summary.name}.{os.getpid()}.tmp")
        aside.write_text(to_json(summary), "utf-8")
        aside.replace(args.summary)
    if not args.quiet:
        print(to_text(summary, args.lang or user_language()), file=sys.stderr)
