"""Hold two records of a run against each other, and name the operator that computes wrong."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.ending import computing
from torchferry.cli.output import check_reports, deliver, need
from torchferry.errors import ReportError, RunError
from torchferry.report.progress import Counted, long_task, print_line
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from torchferry.accuracy.compare.model import RankComparison
    from torchferry.accuracy.compare.sides import RecordFiles
    from torchferry.accuracy.compare.stages import RanksComparison
    from torchferry.accuracy.judge.model import CallPair

_EPILOG = """RECORD is a file of `ferry record`, `ferry replay` or `ferry watch`, or of a vendor's dumper; where there is no gpu.h5 but
gpu.rank0.h5, gpu.rank1.h5 ..., gpu.h5 means all of them, as does gpu.rank*.h5. Ranks are compared with their like; where
the other side has one process, another number of them or another layout (tensor parallel, FSDP), with what they make up
together: the first place where a step parts is named.

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
        "records",
        type=Path,
        nargs="*",
        metavar="RECORD",
        help="MINE, the record to judge, as of the new device; then GOLDEN, the record to hold it against, as of the GPU: "
        "without it, each operator of MINE is held against its own result in double precision. The files of all ranks of "
        "a run count as one",
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
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="hold every call against double precision, also those that a cheaper test clears; takes several times as "
        "long",
    )
    options.add_jobs(parser, "threads (default: one for each processor)", 0, 1024)
    options.add_quiet(parser)
    options.add_language(parser)


NOT_KNOWN = 3  # the exit code where nothing is known to be wrong, and something is not known to be right


def run(args: argparse.Namespace) -> int:
    """Compare, report; the answer is an exit code."""
    need("records are read with", "numpy")
    from torchferry.accuracy.compare.comparing import ComparingPlan
    from torchferry.accuracy.compare.sides import compare_sides
    from torchferry.accuracy.compare.stages import RanksComparison
    from torchferry.accuracy.report import RANKS_REPORTS, REPORTS

    mine, golden = _records(args)

    if args.format in REPORTS.only_files and sys.stdout.isatty():
        raise ReportError(f"{args.format} is not for a terminal; name a file: -o compare.{args.format}")
    check_reports(REPORTS, args.output)
    language = options.language_of(args)
    with computing(), long_task(COMPARING, args.quiet, Counted.BYTES, language) as show:
        first = None if args.quiet else partial(_tell_first, language)
        found = compare_sides(mine, golden, ComparingPlan(args.jobs, show, first, args.thorough))
    if isinstance(found, RanksComparison):
        deliver(RANKS_REPORTS, found, args)
        return exit_code_of_ranks(found, check=args.check)
    deliver(REPORTS, found, args)
    return exit_code(found, check=args.check)


COMPARING = Text("comparing", "正在比较")
_FIRST = Text("first wrong: {said}", "首个错误：{said}")


def _tell_first(language: Language, pair: CallPair) -> None:
    """On stderr at once, while the rest is compared."""
    from torchferry.accuracy.report.sentences import where_of

    operator = pair.mine.operator if pair.mine is not None else ""
    why = pair.judgement.why or Text("", "")
    parts = [operator, where_of(pair).in_language(language), why.in_language(language)]
    said = ": ".join(one_line(part) for part in parts if part)
    print_line(_FIRST.format(said=said).in_language(language))


def _records(args: argparse.Namespace) -> tuple[RecordFiles, RecordFiles | None]:
    from torchferry.accuracy.compare.sides import RecordFiles, grouped

    places = grouped(args.records)
    mine = RecordFiles(args.named_mine) if args.named_mine is not None else next(iter(places), None)
    rest = places if args.named_mine is not None else places[1:]
    golden = RecordFiles(args.named_golden) if args.named_golden is not None else next(iter(rest), None)
    if mine is None:
        raise RunError("which record? ferry compare MINE [GOLDEN], or ferry compare -m MINE [-g GOLDEN]")
    if len(rest) > (0 if args.named_golden is not None else 1):
        raise RunError(f"{rest[-1].name}: is one record too many; name MINE and GOLDEN once each")
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


def exit_code_of_ranks(comparison: RanksComparison, *, check: bool) -> int:
    """1 where the runs part; 3 where it is only random numbers, or a stage could not be compared; with `check`, 1 for
    both."""
    from torchferry.accuracy.compare.stages import Outcome

    found = {each.outcome for each in comparison.stages}
    if Outcome.PARTS in found:
        return 1
    is_known = not found & {Outcome.RANDOM, Outcome.UNKNOWN} and bool(found)
    return 0 if is_known else 1 if check else NOT_KNOWN
