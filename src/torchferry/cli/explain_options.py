"""The options of `ferry explain`."""

from __future__ import annotations

import argparse

from torchferry.cli import common_options

FORMATS = ("text", "json", "md")

_EPILOG = """LOG is a file, also packed (.gz, .bz2, .xz), a folder that is searched for logs (of all ranks of a run, of a vendor's runtime), - for
what comes through a pipe (as without LOG), or a message in quotation marks.

exit codes: 0 fine; 1 with --check: an error was found; 2 no such log or code, bad usage; 3 some logs could not be read, or not whole"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "ferry explain [LOG... | MESSAGE | --code CODE | --list] [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument("logs", nargs="*", metavar="LOG", help="logs of one run (default: standard input)")
    parser.add_argument(
        "--code", metavar="CODE", help="say what an error code means, such as 107002 or EI0006"
    )
    parser.add_argument("--list", action="store_true", help="list all rules")
    parser.add_argument(
        "--to",
        metavar="VENDOR",
        help="use this vendor's rules, and those for CUDA and PyTorch (default: those of all vendors)",
    )
    parser.add_argument(
        "--tee",
        action="store_true",
        help="pass standard input on to standard output as it comes; the report goes to standard error",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="what is printed (default: text)")
    parser.add_argument("--all", action="store_true", help="list every finding, not only the first 15")
    parser.add_argument("--check", action="store_true", help="exit with 1 if an error was found")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    common_options.add_vendor_path(parser)
    common_options.add_language(parser)
