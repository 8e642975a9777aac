"""`ferry scan`: what must change in a project for another accelerator. Writes nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from torchferry.cli import conversion, next_step, options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import exit_code, note_report, report_options
from torchferry.cli.paths import expanded
from torchferry.conversion.discover import check_input
from torchferry.conversion.examples import rule_docs
from torchferry.conversion.planning import ConversionRequest, plan_for
from torchferry.conversion.project import examine_project
from torchferry.errors import FerryError
from torchferry.finding import Finding, Kind
from torchferry.outcome import FileRecord, FileStatus, Report
from torchferry.report.findings import REPORTS
from torchferry.report.progress import long_task
from torchferry.report.streams import reader_may_leave, write_text
from torchferry.text import Text

ABOUT = About(
    Text(
        "Reads Python, notebooks, shell scripts, Dockerfiles, requirements and configurations, and reports every place "
        "that depends on CUDA: what `ferry convert` rewrites, what needs a decision, what blocks the migration. "
        "Nothing is written or run.",
        "读取 Python、notebook、shell 脚本、Dockerfile、依赖和配置文件，报告每一处依赖 CUDA 的代码：哪些由 `ferry convert` "
        "改写，哪些需要您决定，哪些阻塞迁移。不写入也不运行任何内容。",
    ),
    (
        Example("ferry scan --to ascend", Text("Scan the current folder", "扫描当前文件夹")),
        Example(
            "ferry scan my_project --to npu -o report.html",
            Text("Write the report as a page", "将报告写成网页"),
        ),
        Example(
            "ferry scan my_project --to cambricon --check --format github",
            Text("Fail a CI job if there is something to do", "在 CI 中有待处理项时使任务失败"),
        ),
    ),
    exit_codes=(
        ("1", Text("With --check: there is something to do", "使用 --check 时：有待处理项")),
        (
            "3",
            Text(
                "Some files could not be read or parsed, and the others need nothing",
                "部分文件无法读取或解析，其余文件无待处理项",
            ),
        ),
    ),
    page="formats/reports.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry scan`."""
    conversion.add_arguments(parser, several=True)
    group = parser.group(options.REPORTS)
    printable = ", ".join(name for name in REPORTS.names if name not in REPORTS.only_files)
    text = Text(
        "Format of the report; printed: {printable}, the others need -o (default: text, or by the suffix of -o)",
        "报告格式；可直接输出：{printable}，其余需配合 -o（默认：text，或由 -o 的后缀决定）",
    )
    group.add("--format", choices=REPORTS.names, text=text.format(printable=printable))
    options.add_json(group)
    text = Text(
        "Write the report to FILE instead of printing it; the suffix selects the format",
        "将报告写入 FILE 而不输出；由后缀决定格式",
    )
    options.add_output(group, None, text)
    options.add_check(group, Text("there is something to do (for CI)", "存在待处理项（用于 CI）"))
    options.add_verbose(group, old=())
    options.add_quiet(group)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Look, report, answer with the exit code."""
    args.format = args.format or REPORTS.format_of(args.output)
    if not args.output and args.format in REPORTS.only_files:
        raise FerryError(
            Text(
                f"--format {args.format} can't be printed; name a file: -o report.{args.format}",
                f"--format {args.format} 无法打印；请指定文件：-o report.{args.format}",
            )
        )
    roots = [check_input(path) for path in expanded(args.path)]
    plan = plan_for(roots[0], args.to, **options.chosen(args, ConversionRequest))
    with long_task(conversion.SCANNING, args.quiet, language=options.language_of(args)) as progress:
        outcomes = [examine_project(root, plan, progress=progress) for root in roots]
    report = merged(roots, [outcome.report("scan") for outcome in outcomes])
    unread = {item.path for item in report.files if item.status is FileStatus.FAILED}
    is_to_do = any(
        finding.kind not in (Kind.INFO, Kind.RISK) and finding.path not in unread
        for finding in report.findings
    )
    wanted = report_options(args, everything=args.verbose, rule_docs=rule_docs())
    note_report(REPORTS, report, wanted)
    if args.output:
        REPORTS.write(report, args.output, wanted, args.format)
    else:
        with reader_may_leave():
            REPORTS.show(report, args.format, wanted)
            if args.format == "text" and is_to_do and len(roots) == 1 and not args.quiet:
                write_text(sys.stdout, f"\n{next_step.after_scan(roots[0], plan.target, args.lang)}\n")
    for outcome in outcomes:
        conversion.note_nothing(outcome)
    conversion.note_unused_rules(outcomes, plan.custom)
    return exit_code(is_found=args.check and is_to_do, is_partial=any(each.failed for each in outcomes))


def merged(roots: Sequence[Path], reports: Sequence[Report]) -> Report:
    """One report of several folders and files; paths are as they were given."""
    if len(reports) == 1:
        return reports[0]
    files: list[FileRecord] = []
    findings: list[Finding] = []
    for root, each in zip(roots, reports, strict=True):
        place = PurePath(root.parent if root.is_file() else root)
        files += [replace(item, path=(place / item.path).as_posix()) for item in each.files]
        findings += [replace(item, path=(place / item.path).as_posix()) for item in each.findings]
    return replace(
        reports[0],
        project=", ".join(each.project for each in reports),
        files_seen=sum(each.files_seen for each in reports),
        files=tuple(files),
        findings=tuple(findings),
    )
