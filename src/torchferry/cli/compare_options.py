"""The options of `ferry compare`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options, values

FORMATS = ("text", "json", "csv", "msaccucmp", "xlsx", "html")

_jobs = values.whole_number(1, 1024)
_EPILOG = """RECORD is a file of `ferry record`, `ferry replay` or `ferry watch`, or of a vendor's dumper; where there is no gpu.h5 but
gpu.rank0.h5, gpu.rank1.h5 ..., gpu.h5 means all of them, and ranks are compared with their like.

A folder, or a file, of an Ascend runtime's own dump (set_dump, acl.json) is a record as well.

exit codes: 0 no operator is wrong; 1 one is, or the programs differ: other arguments, calls that one side makes alone
(with --check also: one is suspicious or unexplained, or has no counterpart); 2 no records, or nothing to compare in
them; 3 nothing is known to be wrong, but a call that differs could not be judged"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "ferry compare MINE [GOLDEN] [OPTIONS]\n       ferry compare -m MINE [-g GOLDEN] [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "mine", type=Path, nargs="?", metavar="MINE", help="the record to judge, as of the new device"
    )
    parser.add_argument(
        "golden",
        type=Path,
        nargs="?",
        metavar="GOLDEN",
        help="the record to hold it against, as of the GPU; without it, each operator of MINE is held against its own "
        "result in double precision",
    )
    parser.add_argument(
        "-m", "--mine", dest="named_mine", type=Path, metavar="MINE", help="the same, as msaccucmp writes it"
    )
    parser.add_argument(
        "-g",
        "--golden",
        dest="named_golden",
        type=Path,
        metavar="GOLDEN",
        help="the same, as msaccucmp writes it",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="what is printed (default: text); msaccucmp is CSV with the columns and formulas of that tool",
    )
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="write a report; its name says which: .txt, .json, .csv, .msaccucmp.csv, .xlsx, .html; repeat for several",
    )
    parser.add_argument(
        "--all", action="store_true", help="list every call, not only those that need attention"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 also if a call is suspicious, unexplained or has no counterpart, not only if one is wrong",
    )
    parser.add_argument(
        "-j", "--jobs", type=_jobs, default=0, metavar="N", help="threads (default: one for each processor)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    common_options.add_language(parser)
