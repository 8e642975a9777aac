"""The options of `ferry replay`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options
from torchferry.cli.record_options import PHASES

DEFAULT_OUTPUT = "replay.h5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.usage = "ferry replay RECORD (--to VENDOR [--sim] | --device TYPE) [-o FILE] [OPTIONS]"
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
    where.add_argument(
        "--to",
        metavar="VENDOR",
        help="on this vendor's device, a name that `ferry vendors` lists: on its real plugin if that is installed, "
        "else simulated",
    )
    common_options.add_vendor_path(parser)
    where.add_argument(
        "--sim", action="store_true", help="with --to: simulate, even if the vendor's plugin is installed"
    )
    where.add_argument(
        "--device", metavar="TYPE", help="on a device that PyTorch has by itself: cpu, cuda, cuda:1, xpu"
    )
    which = parser.add_argument_group("which of them")
    which.add_argument(
        "--module",
        dest="modules",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only those of modules whose path fits, as layer1.*, *.attn; repeatable",
    )
    which.add_argument(
        "--op",
        dest="operators",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only those whose name fits, as aten::convolution*, mm, *norm*; repeatable",
    )
    which.add_argument(
        "--phase",
        dest="phases",
        action="append",
        default=[],
        choices=PHASES,
        help="only those of the forward pass, the backward pass or the optimizer; repeatable",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no remarks and no progress on stderr")
    common_options.add_language(parser)
