"""The options of `ferry profile`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from torchferry.cli import record_options, values

DEFAULT_OUTPUT = "prof"
_DEFAULT_STEPS = "10:12"
_DEFAULT_WARMUP = 1
_RANGE = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.usage = "ferry profile [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    parser.epilog = (
        "A step reaches from the end of an optimizer's step to the end of the next one, so that the time in which the "
        "program waits for data is in it. Before the first of them the program runs as fast as without a profiler. "
        "`ferry analyze DIR` says what takes the time."
    )
    record_options.add_program_arguments(parser)
    _add_what(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(DEFAULT_OUTPUT),
        metavar="DIR",
        help="the profile: run.json, and a trace of each process. It comes whole or not at all; a profile of that "
        f"name is replaced, any other folder is not (default: {DEFAULT_OUTPUT})",
    )
    record_options.add_place_arguments(parser)


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is profiled")
    group.add_argument(
        "--steps",
        type=steps,
        default=steps(_DEFAULT_STEPS),
        metavar="FIRST:LAST",
        help="these steps of the optimizers, counted from 1, or only one of them; the first ones of a program compile "
        f"and load, and tell little. The program is ended after the last (default: {_DEFAULT_STEPS})",
    )
    group.add_argument(
        "--warmup",
        type=values.whole_number(0),
        default=_DEFAULT_WARMUP,
        metavar="N",
        help="steps before the first one in which the profiler is on, and keeps nothing: what its start costs is not "
        f"in the profile (default: {_DEFAULT_WARMUP})",
    )
    group.add_argument(
        "--no-stacks", action="store_true", help="without Python's functions: costs less, names no lines"
    )
    group.add_argument(
        "--no-shapes", action="store_true", help="without the shapes, strides and types of operators' inputs"
    )
    group.add_argument("--no-memory", action="store_true", help="without allocations")
    group.add_argument(
        "--keep-running",
        action="store_true",
        help="let the program go on, unprofiled, after the last step",
    )


def steps(text: str) -> tuple[int, int]:
    """10:12, or 10 alone."""
    found = _RANGE.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or first) if found else 0
    if not 1 <= first <= last:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no range of steps from 1 on; write it as {_DEFAULT_STEPS}"
        )
    return first, last
