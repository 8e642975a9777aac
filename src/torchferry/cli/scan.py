"""Say what must change in a project for another accelerator, what can't, and how much is automatic. Writes nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.cli import next_step, options
from torchferry.cli.ending import reader_may_leave
from torchferry.cli.options import add_language
from torchferry.convert.discover import check_input
from torchferry.convert.project import examine_project
from torchferry.convert.target import Target
from torchferry.errors import FerryError
from torchferry.finding import Kind
from torchferry.outcome import Report
from torchferry.report.findings import REPORTS
from torchferry.report.formats import Options
from torchferry.report.progress import progress_bar
from torchferry.report.safe import write_to
from torchferry.text import user_language


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry scan`."""
    options.add_target_arguments(parser)
    printable = [name for name in REPORTS.names if name not in REPORTS.only_files]
    parser.add_argument(
        "--format",
        choices=REPORTS.names,
        help=f"printed: {', '.join(printable)}; others need -o (default: text, or what the suffix of -o says)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the report here instead of printing it"
    )
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if there is anything to do (for CI)"
    )
    parser.add_argument("--verbose", action="store_true", help="list everything, without a limit")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="no progress bar and no report, only the exit code"
    )
    add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Look, report, answer with the exit code."""
    args.format = args.format or REPORTS.format_of(args.output)
    if not args.output and args.format in REPORTS.only_files:
        raise FerryError(
            f"--format {args.format} can't be printed; say where to write it: -o report.{args.format}"
        )
    root = check_input(args.path)
    plan = options.make_plan(args)
    with progress_bar(args.quiet, "files") as progress:
        outcome = examine_project(root, plan, progress=progress)
    report = outcome.report("scan")
    _show(args, report, plan.target)
    options.note_nothing(outcome)
    options.note_unused_rules(outcome, plan.custom)
    if outcome.failed:
        return 3
    return 1 if args.check and _is_to_do(report) else 0


def _is_to_do(report: Report) -> bool:
    return any(finding.kind not in (Kind.INFO, Kind.RISK) for finding in report.findings)


def _show(args: argparse.Namespace, report: Report, target: Target) -> None:
    wanted = Options(args.lang or user_language(), args.verbose, rule_docs=options.rule_docs())
    if args.output:
        REPORTS.write(report, args.output, wanted, args.format)
    elif not args.quiet:
        with reader_may_leave():
            REPORTS.show(report, args.format, wanted)
            if args.format == "text" and _is_to_do(report):
                write_to(sys.stdout, f"\n{next_step.after_scan(args.path, target, args.lang)}\n")
