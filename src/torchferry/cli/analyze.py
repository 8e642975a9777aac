"""`ferry analyze`: the bottleneck of a profile by name, its evidence, its remedy, and what that saves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import traces
from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import check_reports, deliver, need
from torchferry.cli.output import exit_code as code_of
from torchferry.cli.paths import expanded
from torchferry.errors import InputError
from torchferry.report.progress import Counted, long_task, print_line
from torchferry.text import NOTHING, Text

if TYPE_CHECKING:
    from torchferry.perf.model import Analysis

LEVELS = ("high", "medium", "low")
TOP = 15

ABOUT = About(
    Text(
        "Reads what `ferry profile` wrote, traces of profilers, Ascend's profiling folders and tables, or host logs. "
        "Files of one run are read together; traces of several ranks are compared.",
        "读取 `ferry profile` 的结果、性能工具的 trace、昇腾的性能数据文件夹和表格，或主机日志。同一次运行的文件一起读取；多个 rank "
        "的 trace 相互比较。",
    ),
    (
        Example("ferry analyze prof", Text("Name the bottleneck of a profile", "指出性能数据中的瓶颈")),
        Example(
            "ferry analyze prof --baseline prof_gpu -o analysis.html",
            Text("Compare with another run, as a page", "与另一次运行比较，写成网页"),
        ),
        Example(
            "ferry analyze prof --check",
            Text("Fail a CI job if there is a bottleneck", "在 CI 中存在瓶颈时以失败结束"),
        ),
    ),
    exit_codes=(
        (
            "1",
            Text(
                "With --check: there is a finding of that severity", "使用 --check 时：存在该严重程度的发现"
            ),
        ),
        ("2", Text("Nothing to read, or not of one run", "没有可读取的内容，或不属于同一次运行")),
        (
            "3",
            Text(
                "A detector failed; the others found nothing of that severity",
                "某个检测器失败，其余未发现该严重程度的问题",
            ),
        ),
    ),
    page="how-to/analyze.md",
)


_READING = Text("reading profiles", "正在读取性能数据")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry analyze`."""
    text = Text(
        "Profile, trace (.json, .json.gz), Ascend folder (*_ascend_pt), trace_view.json, kernel_details.csv, "
        "operator_memory.csv, printed table of operators, or folder of host logs",
        "性能数据、trace（.json、.json.gz）、昇腾文件夹（*_ascend_pt）、trace_view.json、kernel_details.csv、operator_memory.csv、"
        "打印的算子表，或主机日志文件夹",
    )
    parser.add("paths", type=Path, nargs="*", metavar="PATH", text=text)
    text = Text(
        "Compare with this run operator by operator, for example of a GPU or before a change",
        "与该次运行逐算子比较，例如 GPU 上的或修改前的运行",
    )
    parser.add("--baseline", type=Path, metavar="PATH", text=text)
    text = Text(
        "Rewrite the trace so that every viewer shows it correctly, without analysis; needs -o FILE",
        "不分析，只重写 trace 使各种查看器都能正确显示；需要 -o FILE",
    )
    options.add_switch(parser, "--normalize", text)
    group = parser.group(Text("What to look at", "处理范围"))
    text = Text("Read only this rank of several", "多个 rank 中只读取该 rank")
    group.add("--rank", type=int, metavar="N", text=text)
    text = Text("Use only these detectors, separated by commas", "只使用这些检测器，以逗号分隔")
    options.add_repeatable(group, "--select", "ID", text, old=("--only",))
    options.add_repeatable(
        group, "--ignore", "ID", Text("Use all detectors except these", "不使用这些检测器")
    )
    options.add_switch(
        group,
        "--list-detectors",
        Text("List the detectors and what each looks for", "列出检测器及其检查内容"),
    )
    group = parser.group(options.REPORTS)
    options.add_format(group, ("text", "json", "md", "html"))
    options.add_outputs(group, ".txt, .json, .md, .html")
    text = Text(
        "Rows of a table in text and Markdown (default: {top})", "文本和 Markdown 表格的行数（默认：{top}）"
    ).format(top=TOP)
    group.add("--top", type=options.whole_number(1, 100_000), default=TOP, metavar="N", text=text)
    text = Text(
        "Exit with 1 if there is a finding of this severity or higher (default: high)",
        "存在该严重程度或更高的发现时以退出码 1 结束（默认：high）",
    )
    group.add("--check", nargs="?", const="high", choices=LEVELS, text=text)
    options.add_verbose(group, old=())
    options.add_quiet(group)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Analyze, report; the answer is an exit code."""
    need(traces.EXTRA, *traces.LIBRARIES)
    if args.list_detectors:
        return _list_detectors()
    if not args.paths:
        raise InputError(
            Text(
                "nothing to analyze: give a trace, or the folder that `ferry profile` wrote",
                "没有可分析的内容：请给出 trace 或 `ferry profile` 写出的文件夹",
            )
        )
    if args.normalize:
        return _normalize(args)
    from torchferry.perf.analysis import analyze_paths
    from torchferry.perf.report import REPORTS

    check_reports(REPORTS, args.output)
    with long_task(_READING, args.quiet, Counted.BYTES, options.language_of(args)) as on_progress:
        report = analyze_paths(
            expanded([*map(str, args.paths)]),
            args.baseline,
            args.rank,
            args.select,
            args.ignore,
            args.top,
            on_progress,
        )
    deliver(REPORTS, report, args)
    return exit_code(report.analyses, args.check)


def exit_code(analyses: Sequence[Analysis], check: str | None) -> int:
    """1 where there is a finding as severe as `check`, else 3 where a detector failed."""
    bad = LEVELS[: LEVELS.index(check) + 1] if check else ()
    is_found = any(each.severity.value in bad for analysis in analyses for each in analysis.diagnoses)
    return code_of(is_found=is_found, is_partial=any(analysis.failed for analysis in analyses))


def _list_detectors() -> int:
    """What each looks for is the first line of its module."""
    from torchferry.perf import ranks
    from torchferry.perf.detect.registry import DETECTORS
    from torchferry.report.streams import reader_may_leave

    modules = {detector.id: detector.detect.__module__ for detector in DETECTORS} | {ranks.ID: ranks.__name__}
    wide = max(map(len, modules))
    with reader_may_leave():
        for name, module in modules.items():
            print(f"{name:<{wide}}  {(sys.modules[module].__doc__ or '').splitlines()[0]}")
    return 0


def _normalize(args: argparse.Namespace) -> int:
    from torchferry.perf.normalize import normalize

    if len(args.paths) != 1 or len(args.output) != 1:
        raise InputError(
            Text(
                "--normalize takes one trace and one file to write: --normalize trace_view.json -o fixed.json",
                "--normalize 需要一个 trace 和一个输出文件：--normalize trace_view.json -o fixed.json",
            )
        )
    target = args.output[0]
    done = normalize(args.paths[0], target)
    if not args.quiet:
        dropped = _DAMAGED.format(count=f"{done.dropped:,}") if done.dropped else NOTHING
        repaired = _REPAIRED if done.is_repaired else NOTHING
        events = f"{done.events:,}"
        line = _NORMALIZED.format(file=target, events=events, dropped=dropped, repaired=repaired)
        print_line(line.in_language(options.language_of(args)))
    return 0


_NORMALIZED = Text("{file}: {events} events{dropped}{repaired}", "{file}：{events} 个事件{dropped}{repaired}")
_DAMAGED = Text(", {count} damaged events left out", "，略去 {count} 个损坏的事件")
_REPAIRED = Text("; the end was cut off and has been repaired", "；末尾被截断，已修复")
