"""The options of `ferry oplog`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options, values

FORMATS = ("text", "json", "csv", "md")

_EPILOG = """LOG is a file, also packed (.gz), or a folder that is searched for logs; logs of the devices in it are left out.

exit codes: 0 fine; 1 with --check: operators were compiled after the warm-up; 2 no log, or no line about operators
in it; 3 some files could not be read, the others were"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "ferry oplog LOG... [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "logs", nargs="+", type=Path, metavar="LOG", help="logs, or folders of logs, of one run"
    )
    parser.add_argument(
        "--to", metavar="VENDOR", help="whose logs they are (default: the only one whose logs are known)"
    )
    warm_up = parser.add_mutually_exclusive_group()
    warm_up.add_argument(
        "--after",
        default="",
        metavar="TIME",
        help="the warm-up ends at this time of the log: 10:11:12, or 2024-05-06-10:11:12",
    )
    warm_up.add_argument(
        "--warmup",
        type=_seconds,
        metavar="SECONDS",
        help="the warm-up of a process ends so long after its first operator",
    )
    warm_up.add_argument(
        "--shapes",
        type=values.whole_number(2),
        default=0,
        metavar="N",
        help="count compiles from the N-th shape of the same operator on, whenever they are",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="what is printed (default: text)")
    parser.add_argument(
        "--summary",
        type=Path,
        metavar="FILE",
        help="also write each operator with its parameters, in the form of the OP_INFO summary of the vendor's guide",
    )
    parser.add_argument("--all", action="store_true", help="list every operator, not only the first 30")
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if there are compiles after the warm-up"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    common_options.add_vendor_path(parser)
    common_options.add_language(parser)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds
