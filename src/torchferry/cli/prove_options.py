"""The options of `ferry prove`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from torchferry.cli import common_options, run_options, values
from torchferry.sim.environment import parse_memory

_DEFAULT_STEPS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.allow_abbrev = False  # argparse would look for abbreviations among the program's own options, too
    parser.usage = (
        "ferry prove --to VENDOR[,VENDOR...] [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]\n"
        "       ferry prove --to VENDOR[,VENDOR...] [OPTIONS] --original SCRIPT --converted SCRIPT [-- ARGUMENTS]"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help=argparse.SUPPRESS)
    parser.add_argument(
        "--to", required=True, metavar="VENDORS", help="names that `ferry vendors` lists, with commas"
    )
    parser.add_argument(
        "-m", "--module", action="store_true", help="the program is a module, as in python -m"
    )
    parser.add_argument("--original", metavar="SCRIPT", help="the program before the conversion")
    parser.add_argument(
        "--converted",
        metavar="SCRIPT",
        help="the converted program; {vendor} in the path stands for each vendor's name",
    )
    common_options.add_vendor_path(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="keep proof.json, proof.html and the runs' output here",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    common_options.add_language(parser)
    _add_conditions(parser)
    _add_tolerances(parser)
    run_options.add_torchrun_arguments(parser)


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what both runs have in common")
    group.add_argument(
        "--steps",
        type=values.steps,
        default=_DEFAULT_STEPS,
        metavar="N",
        help="end each run after so many steps of the optimizer that steps most; `all`: let it run to its end "
        f"(default: {_DEFAULT_STEPS})",
    )
    group.add_argument(
        "--seed", type=values.seed, default=0, metavar="N", help="of every generator (default: 0)"
    )
    group.add_argument(
        "--same-weights",
        action="store_true",
        help="the migrated run begins with the weights of the original, whatever it drew itself",
    )
    group.add_argument(
        "--devices",
        type=values.at_least_one,
        metavar="N",
        help="devices that the program sees (default: one, with --nproc one for each process)",
    )
    group.add_argument("--memory", type=parse_memory, metavar="SIZE", help="memory of each device, as 32GiB")
    common_options.add_emulate(
        group,
        "run the migrated program on the vendor's own plugin, on an emulated device, instead of a simulated one; "
        "`ferry emulate setup` sets it up",
    )
    group.add_argument(
        "--cwd",
        type=Path,
        metavar="DIR",
        help="the folder that both runs start in (default: this one; of --original and --converted, each the root of "
        "its own project)",
    )
    group.add_argument(
        "--timeout",
        type=values.seconds,
        metavar="SECONDS",
        help="end a run that takes longer (default: each takes as long as it takes)",
    )


def _add_tolerances(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is close enough")
    group.add_argument(
        "--rtol",
        type=_tolerance,
        metavar="X",
        help="relative (default: by dtype, as torch.testing.assert_close)",
    )
    group.add_argument("--atol", type=_tolerance, metavar="X", help="absolute (default: by dtype, as above)")
    group.add_argument("--exact", action="store_true", help="nothing but equal bit for bit")


def _tolerance(text: str) -> float:
    value = values.number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a tolerance; write it as 1e-6")
    return value
