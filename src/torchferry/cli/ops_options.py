"""The options of `ferry ops`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options, run_options, values

FORMATS = ("text", "json", "md", "csv", "xlsx", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.allow_abbrev = False  # argparse would look for abbreviations among the program's own options, too
    parser.usage = (
        "ferry ops --to VENDOR[,VENDOR...] [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]\n"
        "       ferry ops --to VENDOR[,VENDOR...] [OPTIONS] --model PACKAGE.MODULE:FACTORY --input SHAPE ...\n"
        "       ferry ops --to VENDOR[,VENDOR...] [OPTIONS] (--trace | --capture) FILE"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help=argparse.SUPPRESS)
    parser.add_argument(
        "--to",
        metavar="VENDORS",
        help="names that `ferry vendors` lists, with commas; `all`; VENDOR@VERSION asks the table of one version of "
        "the vendor's adapter. May also follow the program's own arguments, with further options of ours after it",
    )
    common_options.add_vendor_path(parser)
    _add_program(parser)
    _add_model(parser)
    _add_files(parser)
    _add_reports(parser)
    run_options.add_torchrun_arguments(parser)


def _add_program(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a program")
    group.add_argument("-m", "--module", action="store_true", help="the program is a module, as in python -m")
    group.add_argument(
        "--steps",
        type=values.steps,
        default=1,
        metavar="N",
        help="end the program when each of its optimizers has made so many steps; `all`: let it run to its end "
        "(default: 1)",
    )
    common_options.add_means(
        group,
        "run on the simulated device of the first vendor instead of the CPU",
        "run on the first vendor's own plugin, on an emulated device, instead of the CPU",
    )
    group.add_argument(
        "--converted",
        action="store_true",
        help="with --sim or --emulate: the program is converted already, CUDA's names keep their meaning",
    )
    group.add_argument(
        "--as-is",
        nargs="?",
        const="cuda",
        metavar="DEVICE",
        help="run the program as it is, on a device of this machine (default: cuda)",
    )
    group.add_argument(
        "--timeout",
        type=values.seconds,
        metavar="SECONDS",
        help="end a program that takes longer, and report what was seen (default: as long as it takes)",
    )


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a model without a program")
    common_options.add_model(group, "8x3x224x224, 4x128:int64:ints(0,30000), mask=4x128:bool")
    group.add_argument(
        "--backward", action="store_true", help="a training step: loss, backward pass, optimizer"
    )
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
    group.add_argument(
        "--fake",
        action="store_true",
        help="with shapes alone, for models that are too large to run here: nothing is computed, no time is known",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
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


def _add_reports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    group.add_argument(
        "-o",
        "--output",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="write a report; the suffix says which: .json .html .xlsx .md .csv .txt; repeatable",
    )
    group.add_argument("--format", choices=FORMATS, default="text", help="of what is printed (default: text)")
    group.add_argument(
        "--all", action="store_true", help="list every operator in the text, not only those with a problem"
    )
    group.add_argument(
        "--check",
        action="store_true",
        help="exit 1 if an operator is missing, falls back to the CPU or is limited on one of the vendors",
    )
    group.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress, and nothing of what the program prints to its stdout",
    )
    common_options.add_language(parser)
