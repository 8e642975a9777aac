"""`ferry compare`: two recordings of a run, operator by operator, and the one that computes wrong."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.ending import computing
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import RECORD_EXTRA, check_reports, deliver, need
from torchferry.errors import ReportError, RunError
from torchferry.report.progress import Counted, long_task, print_line
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from torchferry.accuracy.compare.model import RankComparison
    from torchferry.accuracy.compare.sides import RecordFiles
    from torchferry.accuracy.compare.stages import RanksComparison
    from torchferry.accuracy.judge.model import CallPair

ABOUT = About(
    Text(
        "Finds the first operator whose results its own inputs don't explain, and tells it from errors that are "
        "inherited. A recording comes from `ferry record`, `ferry replay` or `ferry watch`, from an Ascend runtime's "
        "dump (set_dump, acl.json) or from msprobe. Ranks are compared one by one; where both sides have another layout "
        "(tensor parallel, FSDP), the tensors that they make up together.",
        "找出第一个不能由自身输入解释其结果的算子，并与继承的误差区分。记录来自 `ferry record`、`ferry replay` 或 `ferry watch`，昇腾"
        "运行时的 dump（set_dump、acl.json）或 msprobe。rank 逐个比较；两侧布局不同时（张量并行、FSDP），比较合并后的张量。",
    ),
    (
        Example("ferry compare npu.h5 gpu.h5", Text("Compare with a golden recording", "与标杆记录比较")),
        Example(
            "ferry compare npu.h5",
            Text("Compare each operator with double precision", "将每个算子与双精度结果比较"),
        ),
        Example(
            "ferry compare npu_dump gpu_dump -o compare.html",
            Text("Compare two dumps of msprobe, as a page", "比较两份 msprobe dump，写成网页"),
        ),
    ),
    usage=("MINE [GOLDEN] [OPTIONS]",),
    exit_codes=(
        ("0", Text("No operator is wrong", "没有算子出错")),
        (
            "1",
            Text(
                "An operator is wrong, or the programs differ: other arguments, calls that only one side makes. With "
                "--check also: a call is suspicious, unexplained or has no counterpart",
                "有算子出错，或程序不同：参数不同、只有一侧有的调用。使用 --check 时还包括：调用可疑、无法解释或没有对应项",
            ),
        ),
        ("2", Text("No recordings, or nothing to compare in them", "没有记录，或其中没有可比较的内容")),
        (
            "3",
            Text(
                "No operator is known to be wrong, but a call that differs could not be judged",
                "未发现出错的算子，但有存在差异的调用无法判断",
            ),
        ),
    ),
    page="how-to/compare.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry compare`."""
    text = Text(
        "MINE, the recording to judge, for example of the new device; then GOLDEN, the one to compare with, for example "
        "of the GPU. Without GOLDEN each operator is compared with its own result in double precision. gpu.h5 also "
        "stands for gpu.rank0.h5, gpu.rank1.h5 ...",
        "MINE 为待测记录，例如新设备的记录；GOLDEN 为标杆，例如 GPU 的记录。没有 GOLDEN 时，每个算子与自身的双精度结果比较。"
        "gpu.h5 也代表 gpu.rank0.h5、gpu.rank1.h5 等",
    )
    parser.add("records", type=Path, nargs="*", metavar="RECORD", text=text)
    text = Text("The recording to judge, by option", "以选项形式给出待测记录")
    parser.add("--mine", old=("-m",), dest="named_mine", type=Path, metavar="MINE", text=text)
    text = Text("The recording to compare with, by option", "以选项形式给出标杆记录")
    parser.add("--golden", old=("-g",), dest="named_golden", type=Path, metavar="GOLDEN", text=text)
    text = Text(
        "Compare every call with double precision, also those that a cheaper test clears; takes several times as long",
        "将每次调用都与双精度比较，包括较快的测试已通过的调用；耗时为数倍",
    )
    options.add_switch(parser, "--thorough", text)
    options.add_jobs(parser, options.THREADS, 0, 1024)
    group = parser.group(options.REPORTS)
    formats = ("text", "json", "csv", "msaccucmp", "msprobe", "xlsx", "html")
    text = Text(
        "Format of the printed report (default: text); msaccucmp and msprobe are CSV with the columns of these tools",
        "输出报告的格式（默认：text）；msaccucmp 和 msprobe 为采用相应工具列格式的 CSV",
    )
    options.add_format(group, formats, text)
    options.add_outputs(group, ".txt, .json, .csv, .msaccucmp.csv, .msprobe.csv, .xlsx, .html")
    options.add_verbose(group)
    text = Text(
        "a call is suspicious, unexplained or has no counterpart, too", "调用可疑、无法解释或没有对应项"
    )
    options.add_check(group, text)
    options.add_quiet(group)
    options.add_language(parser)


NOT_KNOWN = 3  # the exit code where nothing is known to be wrong, and something is not known to be right


def run(args: argparse.Namespace) -> int:
    """Compare, report; the answer is an exit code."""
    need(RECORD_EXTRA, "numpy")
    from torchferry.accuracy.compare.comparing import ComparingPlan
    from torchferry.accuracy.compare.sides import compare_sides
    from torchferry.accuracy.compare.stages import RanksComparison
    from torchferry.accuracy.report import RANKS_REPORTS, REPORTS

    mine, golden = _records(args)

    if args.format in REPORTS.only_files and sys.stdout.isatty():
        raise ReportError(
            Text(
                f"{args.format} is not for a terminal; name a file: -o compare.{args.format}",
                f"{args.format} 不适合在终端显示；请指定文件：-o compare.{args.format}",
            )
        )
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
_FIRST = Text("first wrong: {said}", "第一个出错的算子：{said}")


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
        raise RunError(
            Text("which record? ferry compare MINE [GOLDEN]", "哪份记录？ferry compare MINE [GOLDEN]")
        )
    if len(rest) > (0 if args.named_golden is not None else 1):
        raise RunError(
            Text(
                f"{rest[-1].name}: one record too many; name MINE and GOLDEN once each",
                f"{rest[-1].name}：记录过多；MINE 和 GOLDEN 各指定一次",
            )
        )
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
