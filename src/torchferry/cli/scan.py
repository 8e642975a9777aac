"""Say what must change in a project for another accelerator, what can't, and how much is automatic. Writes nothing."""

from __future__ import annotations

import argparse
import sys

from torchferry.cli import conversion, next_step, options
from torchferry.cli.output import note_report, report_options
from torchferry.conversion.discover import check_input
from torchferry.conversion.project import examine_project
from torchferry.conversion.rule import rule_docs
from torchferry.errors import FerryError
from torchferry.finding import Kind
from torchferry.report.findings import REPORTS
from torchferry.report.progress import long_task
from torchferry.report.streams import reader_may_leave, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry scan`."""
    conversion.add_arguments(parser)
    printable = [name for name in REPORTS.names if name not in REPORTS.only_files]
    parser.add_argument(
        "--format",
        choices=REPORTS.names,
        help=f"printed: {', '.join(printable)}; others need -o (default: text, or what the suffix of -o says)",
    )
    options.add_output(parser, None, "write the report here instead of printing it")
    options.add_check(parser, "there is anything to do (for CI)")
    options.add_switch(parser, "--verbose", "list everything, without a limit")
    options.add_quiet(parser, "no progress bar and no report, only the exit code")
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Look, report, answer with the exit code."""
    args.format = args.format or REPORTS.format_of(args.output)
    if not args.output and args.format in REPORTS.only_files:
        raise FerryError(
            f"--format {args.format} can't be printed; say where to write it: -o report.{args.format}"
        )
    root = check_input(args.path)
    plan = conversion.plan_of(args)
    with long_task(conversion.SCANNING, args.quiet, language=options.language_of(args)) as progress:
        outcome = examine_project(root, plan, progress=progress)
    report = outcome.report("scan")
    is_to_do = any(finding.kind not in (Kind.INFO, Kind.RISK) for finding in report.findings)
    wanted = report_options(args, everything=args.verbose, rule_docs=rule_docs())
    note_report(REPORTS, report, wanted)
    if args.output:
        REPORTS.write(report, args.output, wanted, args.format)
    elif not args.quiet:
        with reader_may_leave():
            REPORTS.show(report, args.format, wanted)
            if args.format == "text" and is_to_do:
                write_text(sys.stdout, f"\n{next_step.after_scan(args.path, plan.target, args.lang)}\n")
    conversion.note_nothing(outcome)
    conversion.note_unused_rules(outcome, plan.custom)
    if outcome.failed:
        return 3
    return 1 if args.check and is_to_do else 0
