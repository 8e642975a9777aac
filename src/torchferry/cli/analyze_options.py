"""The options of `ferry analyze`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options, values

FORMATS = ("text", "json", "md", "html")
LEVELS = ("high", "medium", "low")
TOP = 15

_EPILOG = """PATH is what `ferry profile` wrote, a trace of a profiler (.json, .json.gz), an Ascend folder (*_ascend_pt) or
trace_view.json, kernel_details.csv, operator_memory.csv, a printed table of operators, or a folder of host
logs. What belongs to one run is read together; traces of several ranks are compared with each other.

exit codes: 0 analyzed; 1 with --check: there is a finding of that severity; 2 nothing to read, or not of one run;
3 a detector broke down, the others did their work"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "ferry analyze PATH... [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "paths", type=Path, nargs="*", metavar="PATH", help="a trace, a table, or a folder of them"
    )
    _add_work(parser)
    _add_output(parser)
    common_options.add_language(parser)


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="PATH",
        help="compare with this run operator by operator, as of a GPU or of before a change",
    )
    parser.add_argument(
        "--normalize",
        action="store_true",
        help="no analysis: write the trace so that every viewer shows it right; needs -o FILE",
    )
    parser.add_argument("--rank", type=int, metavar="N", help="of several processes only this one")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="only this detector; repeat, or divide by commas",
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="ID", help="without this detector; likewise"
    )
    parser.add_argument(
        "--list-detectors", action="store_true", help="print the detectors and what each looks for"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="text", help="what is printed (default: text)")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="write a report; its name says which: .txt, .json, .md, .html; repeat for several",
    )
    parser.add_argument(
        "--top",
        type=values.whole_number(1, 100_000),
        default=TOP,
        metavar="N",
        help=f"rows of a table in text and Markdown (default: {TOP})",
    )
    parser.add_argument(
        "--check",
        nargs="?",
        const="high",
        choices=LEVELS,
        help="exit with 1 if there is a finding of this severity or a higher one (default: high)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
