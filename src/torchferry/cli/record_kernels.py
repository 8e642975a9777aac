"""`ferry record kernels`: which kernels of a device the operators of a profiler's trace launched."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.accuracy.kernels.text import FORMATS, kernel_report, recorded_report
from torchferry.cli import common_options
from torchferry.cli.ending import reader_may_leave
from torchferry.text import user_language

DESCRIPTION = (
    "Say which kernels of the device each operator launched, from a trace of torch.profiler or of a vendor's profiler "
    "(.json, .json.gz)."
)


def run(words: list[str]) -> int:
    """The answer is an exit code."""
    parser = argparse.ArgumentParser(prog="ferry record kernels", description=DESCRIPTION)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="what the profiler wrote, of the same step")
    parser.add_argument("--op", default="", metavar="TEXT", help="only operators whose names contain this")
    parser.add_argument(
        "--of",
        type=Path,
        metavar="RECORD",
        help="list the calls of this record, each with its kernels: the n-th call of an operator with some shapes in "
        "a step is the n-th of the trace",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="of what is printed (default: text)"
    )
    common_options.add_language(parser)
    args = parser.parse_args(words)
    language = args.lang or user_language()
    if args.of is None:
        report = kernel_report(args.trace, args.op, args.format, language)
    else:
        report = recorded_report(args.of, args.trace, args.op, args.format)
    with reader_may_leave():
        sys.stdout.write(report)
        sys.stdout.flush()
    return 0
