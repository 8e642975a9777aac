"""Hold two records of a run against each other, and name the operator that computes wrong."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.ending import computing
from torchferry.cli.output import check_reports, deliver, need
from torchferry.errors import ReportError, RunError
from torchferry.report.progress import progress_bar

if TYPE_CHECKING:
    from torchferry.accuracy.compare.model import RankComparison

_EPILOG = """RECORD is a file of `ferry record`, `ferry replay` or `ferry watch`, or of a vendor's dumper; where there is no gpu.h5 but
gpu.rank0.h5, gpu.rank1.h5 ..., gpu.h5 means all of them, and ranks are compared with their like.

A folder, or a file, of an Ascend runtime's own dump (set_dump, acl.json) is a record as well, and so is a folder of
msprobe's dumps: that of a rank, of a step, or the one above.

exit codes: 0 no operator is wrong; 1 one is, or the programs differ: other arguments, calls that one side makes alone
(with --check also: one is suspicious or unexplained, or has no counterpart); 2 no records, or nothing to compare in
them; 3 nothing is known to be wrong, but a call that differs could not be judged"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry compare`."""
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
    options.add_format(
        parser,
        ("text", "json", "csv", "msaccucmp", "msprobe", "xlsx", "html"),
        "; msaccucmp is CSV with the columns and formulas of that tool, msprobe with the columns of that one",
    )
    options.add_outputs(parser, ".txt, .json, .csv, .msaccucmp.csv, .msprobe.csv, .xlsx, .html")
    options.add_all(parser, "list every call, not only those that need attention")
    options.add_check(
        parser, "a call is suspicious, unexplained or has no counterpart, too, not only if one is wrong"
    )
    options.add_jobs(parser, "threads (default: one for each processor)", 0, 1024)
    options.add_quiet(parser)
    options.add_language(parser)


NOT_KNOWN = 3  # the exit code where nothing is known to be wrong, and something is not known to be right


def run(args: argparse.Namespace) -> int:
    """Compare, report; the answer is an exit code."""
    mine, golden = _records(args)
    need("records are read with", "numpy")
    from torchferry.accuracy.compare.comparing import ComparingPlan, compare_files
    from torchferry.accuracy.report import REPORTS

    if args.format in REPORTS.only_files and sys.stdout.isatty():
        raise ReportError(f"{args.format} is not for a terminal; name a file: -o compare.{args.format}")
    check_reports(REPORTS, args.output)
    with computing(), progress_bar(args.quiet) as show:
        comparisons = compare_files(mine, golden, ComparingPlan(args.jobs, show))
    deliver(REPORTS, comparisons, args)
    return exit_code(comparisons, check=args.check)


def _records(args: argparse.Namespace) -> tuple[Path, Path | None]:
    places = [each for each in (args.mine, args.golden) if each is not None]
    mine = args.named_mine if args.named_mine is not None else next(iter(places), None)
    rest = places if args.named_mine is not None else places[1:]
    golden = args.named_golden if args.named_golden is not None else next(iter(rest), None)
    if mine is None:
        raise RunError("which record? ferry compare MINE [GOLDEN], or ferry compare -m MINE [-g GOLDEN]")
    if len(rest) > (0 if args.named_golden is not None else 1):
        raise RunError(f"{rest[-1]}: is one record too many; name MINE and GOLDEN once each")
    return mine, golden


def exit_code(comparisons: list[RankComparison], *, check: bool) -> int:
    """1 where a call is wrong, or the programs differ; 3 where that is not known; with `check`, 1 for all that may be."""
    from torchferry.accuracy.compare.network import unmatched_counts
    from torchferry.accuracy.judge.model import Verdict

    found = {pair.verdict for comparison in comparisons for pair in comparison.pairs.outlines()}
    doubtful = {Verdict.SUSPICIOUS, Verdict.UNEXPLAINED} if check else set()
    if found & {Verdict.FAULT, Verdict.PROGRAM, *doubtful}:
        return 1
    if check and any(any(unmatched_counts(each.pairs)) for each in comparisons if each.golden is not None):
        return 1
    return NOT_KNOWN if Verdict.UNEXPLAINED in found else 0
