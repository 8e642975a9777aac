"""Read the host logs of a vendor's runtime: operators with their shapes, and compiles after the warm-up."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import show
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text

_EPILOG = """LOG is a file, also packed (.gz), or a folder that is searched for logs; logs of the devices in it are left out.

exit codes: 0 fine; 1 with --check: operators were compiled after the warm-up; 2 no log, or no line about operators
in it; 3 some files could not be read, the others were"""


_READING = Text("reading logs", "正在读取日志")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry oplog`."""
    parser.usage = "ferry oplog LOG... [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "logs", nargs="+", type=Path, metavar="LOG", help="logs, or folders of logs, of one run"
    )
    options.add_to(parser, "whose logs they are (default: the only one whose logs are known)")
    warm_up = parser.add_mutually_exclusive_group()
    warm_up.add_argument(
        "--after",
        default="",
        metavar="TIME",
        help="the warm-up ends at this time of the log: 10:11:12, or 2024-05-06-10:11:12",
    )
    warm_up.add_argument(
        "--warmup",
        type=options.number_from_zero(math.inf, "a number of seconds"),
        metavar="SECONDS",
        help="the warm-up of a process ends so long after its first operator",
    )
    warm_up.add_argument(
        "--shapes",
        type=options.whole_number(2),
        default=0,
        metavar="N",
        help="count compiles from the N-th shape of the same operator on, whenever they are",
    )
    options.add_format(parser, ("text", "json", "csv", "md", "html"))
    parser.add_argument(
        "--summary",
        type=Path,
        metavar="FILE",
        help="also write each operator with its parameters, in the form of the OP_INFO summary of the vendor's guide",
    )
    options.add_all(parser, "list every operator, not only the first 30")
    options.add_check(parser, "there are compiles after the warm-up")
    options.add_quiet(parser)
    options.add_vendor_path(parser)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Read, report; the answer is an exit code."""
    from torchferry.perf.oplog.reading import WarmUp, host_log_of, read_oplog
    from torchferry.perf.oplog.report import REPORTS, to_summary
    from torchferry.report.formats import write_file

    vendor, forms = host_log_of(args.to, args.vendor_path)
    warm_up = WarmUp(args.after, args.warmup, args.shapes)
    with long_task(_READING, args.quiet, Counted.BYTES, options.language_of(args)) as progress:
        log = read_oplog(args.logs, vendor, forms, warm_up, progress)
    if args.summary is not None:
        write_file(args.summary, to_summary(log))
    show(REPORTS, log, args)
    return 3 if log.unread else int(args.check and bool(log.recompiles))
