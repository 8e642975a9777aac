"""The options of `ferry doctor`."""

from __future__ import annotations

import argparse

from torchferry.cli import common_options

PARTS = ("host",)
FORMATS = ("text", "json", "md")

_EPILOG = """Without PART the whole machine is looked at: driver, toolkit, plugin and whether their versions match, device files,
the vendor's own command, libraries, variables, the network, and the host. With `host` only what costs speed: processors,
memory, limits, libraries for images, the variables of the vendor's runtime. Nothing is changed, no privileges are needed.

exit codes: 0 fine; 1 with --check: the machine is not ready, or not known to be, or with `host`: something costs speed;
2 bad usage"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "ferry doctor [PART] [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "part",
        nargs="?",
        choices=PARTS,
        default=None,
        metavar="PART",
        help="host (default: the whole machine)",
    )
    parser.add_argument(
        "--to",
        metavar="VENDOR",
        help="the vendor whose device is to be used (default: the one of whom something is installed here)",
    )
    parser.add_argument(
        "--nproc",
        type=_count,
        default=1,
        metavar="N",
        help="processes that will train on this machine: they share its processors (default: 1)",
    )
    parser.add_argument(
        "--try",
        dest="trial",
        action="store_true",
        help="also start a process that imports the plugin and computes on each device",
    )
    common_options.add_emulate(
        parser,
        "with --to: look at what programs need to run the vendor's own plugin on an emulated device",
    )
    parser.add_argument(
        "--all", action="store_true", help="explain also what is fine, or can't be seen from here"
    )
    parser.add_argument(
        "--fix", action="store_true", help="print only commands that put things right; run none"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="what is printed (default: text)")
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 if the machine is not ready, or with `host` if something costs speed",
    )
    common_options.add_vendor_path(parser)
    common_options.add_language(parser)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1024")
    return int(text)
