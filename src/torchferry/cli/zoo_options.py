"""The options of `ferry zoo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options

ACTIONS = ("new", "check")
FORMATS = ("text", "json", "md")

_EPILOG = """`new` makes the folder PATH from a project: its code converted, a README in Chinese and in English, requirements,
scripts that start a training, the logs of both runs, the licence. It never overwrites anything. `check` says what is
missing in such a folder, and compares the migrated model's log with the original's and with the README.

exit codes: 0 complete; 1 `check`: something is missing; 2 bad usage or input; 3 `new`: some files could not be converted"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "ferry zoo (new | check) PATH [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help="new or check")
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="the folder, as in PyTorch/contrib/Classification/ResNet50"
    )
    parser.add_argument(
        "--to", metavar="VENDOR", help="whose model zoo it is for (default: the only vendor that has one)"
    )
    _add_for_new(parser.add_argument_group("for `new`"))
    _add_for_check(parser.add_argument_group("for `check`"))
    common_options.add_vendor_path(parser)
    common_options.add_language(parser)


def _add_for_new(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--from", dest="origin", type=Path, metavar="DIR", help="the original project")
    group.add_argument(
        "--main",
        metavar="SCRIPT",
        help="the script that trains (default: the likeliest, if one is clearly ahead)",
    )
    group.add_argument(
        "--arguments", metavar="TEXT", help="arguments with which it trains only shortly, as one text"
    )
    group.add_argument("--amp", action="store_true", help="add mixed precision where there is none")
    group.add_argument(
        "--distributed", action="store_true", help="make a program for one card one for many; needs --main"
    )
    group.add_argument(
        "--channels-last",
        action="store_true",
        help="put models and images in channels_last (NHWC), as the zoo's guide offers",
    )
    group.add_argument(
        "--results", type=Path, metavar="FILE", help="log, CSV or JSON of the migrated program's run"
    )
    group.add_argument("--original", type=Path, metavar="FILE", help="the same of the original's run")
    group.add_argument("--source", metavar="URL", help="where the original comes from")
    group.add_argument("--commit", metavar="ID", help="which state of it")
    group.add_argument("--dataset", metavar="TEXT", help="the data set and where it is to be had")


def _add_for_check(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--run",
        action="store_true",
        help="run the short training, on a simulated device if there is no real one",
    )
    group.add_argument(
        "--tolerance",
        type=_share,
        metavar="X",
        help="by how much losses may be greater on average, as 0.05 (default: the zoo's own rule)",
    )
    group.add_argument("--format", choices=FORMATS, default="text", help="what is printed (default: text)")


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value
