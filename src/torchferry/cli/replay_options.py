"""The options of `ferry replay`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options, record_options

DEFAULT_OUTPUT = "replay.h5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.usage = "ferry replay RECORD (--to VENDOR [--sim | --emulate] | --device TYPE) [-o FILE] [OPTIONS]"
    parser.epilog = (
        "Every operator gets the inputs that it had in the record, so an error of one is not handed on to the next. "
        "Calls keep their numbers: `ferry compare FILE RECORD` holds the two against each other. Exit code 3: some "
        "operators failed on the device."
    )
    parser.add_argument(
        "record",
        type=Path,
        metavar="RECORD",
        help="what `ferry record` has written; gpu.h5 also stands for gpu.rank0.h5, gpu.rank1.h5 ...",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(DEFAULT_OUTPUT),
        metavar="FILE",
        help=f"the new record; one of an earlier run is replaced (default: {DEFAULT_OUTPUT})",
    )
    where = parser.add_argument_group("where the operators are called")
    common_options.add_vendor_device(parser, where)
    where.add_argument(
        "--device", metavar="TYPE", help="on a device that PyTorch has by itself: cpu, cuda, cuda:1, xpu"
    )
    record_options.add_selection(parser.add_argument_group("which of them"))
    parser.add_argument("-q", "--quiet", action="store_true", help="no remarks and no progress on stderr")
    common_options.add_language(parser)
