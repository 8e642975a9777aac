"""`ferry scan`: what must change in a project for another accelerator. Writes nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

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
from torchferry.vendors.registry import vendor_names

if TYPE_CHECKING:
    from torchferry.conversion.project import Plan, ProjectOutcome
    from torchferry.report.formats import Reports

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
    reports: Reports[Any] = REPORTS
    targets = targets_of(args)
    if len(targets) > 1:
        from torchferry.report.findings.by_vendor import REPORTS as BY_VENDOR

        reports = BY_VENDOR
    args.format = args.format or reports.format_of(args.output)
    if not args.output and args.format in reports.only_files:
        raise FerryError(_NOT_PRINTED.format(form=args.format))
    reports.find(args.format)
    roots = [check_input(path) for path in expanded(args.path)]
    return _compare(args, roots, targets) if len(targets) > 1 else _scan(args, roots)


def targets_of(args: argparse.Namespace) -> list[str]:
    """The targets that --to names."""
    names = options.names(args.to)
    if not names:
        raise FerryError(_WHICH)
    return vendor_names(args.vendor_path) if [name.lower() for name in names] == ["all"] else names


def _scanned(
    args: argparse.Namespace, roots: Sequence[Path], target: str
) -> tuple[Plan, list[ProjectOutcome]]:
    plan = plan_for(roots[0], target, **options.chosen(args, ConversionRequest))
    with long_task(conversion.SCANNING, args.quiet, language=options.language_of(args)) as progress:
        return plan, [examine_project(root, plan, progress=progress) for root in roots]


def _scan(args: argparse.Namespace, roots: Sequence[Path]) -> int:
    plan, outcomes = _scanned(args, roots, options.names(args.to)[0])
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
                hint = next_step.after_scan(roots[0], plan.target, args.vendor_path)
                write_text(sys.stdout, f"\n{hint.in_language(options.language_of(args))}\n")
    for outcome in outcomes:
        conversion.note_nothing(outcome)
    conversion.note_unused_rules(outcomes, plan.custom)
    return exit_code(is_found=args.check and is_to_do, is_partial=any(each.failed for each in outcomes))


def _compare(args: argparse.Namespace, roots: Sequence[Path], targets: Sequence[str]) -> int:
    """Which of several targets is least work?"""
    from torchferry.report.findings.by_vendor import REPORTS as BY_VENDOR
    from torchferry.report.findings.by_vendor import compared

    reports, is_partial = [], False
    for target in targets:
        _, outcomes = _scanned(args, roots, target)
        reports.append(merged(roots, [outcome.report("scan") for outcome in outcomes]))
        is_partial = is_partial or any(each.failed for each in outcomes)
    work, wanted = compared(reports), report_options(args)
    if args.output:
        BY_VENDOR.write(work, args.output, wanted, args.format)
    else:
        BY_VENDOR.show(work, args.format, wanted)
    return exit_code(is_found=args.check and work.is_to_do, is_partial=is_partial)


_WHICH = Text("which target? ferry scan PATH --to VENDOR", "哪个目标？ferry scan PATH --to VENDOR")
_NOT_PRINTED = Text(
    "--format {form} can't be printed; name a file: -o report.{form}",
    "--format {form} 无法直接输出；请指定文件：-o report.{form}",
)


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
