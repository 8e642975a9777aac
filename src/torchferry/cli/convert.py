"""Write a converted copy of a project, with reports. The input is never touched, unless you say --in-place."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.cli import options
from torchferry.convert.discover import check_input
from torchferry.convert.project import ProjectOutcome, examine_project
from torchferry.convert.write import check_in_place, check_output, write_in_place, write_project
from torchferry.errors import FerryError
from torchferry.outcome import Report
from torchferry.report.render import print_report, write_report

# Reports that every converted copy carries: the canonical one, and the page to read.
_REPORTS = {"findings.json": "json", "report.html": "html"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry convert`."""
    options.add_target_arguments(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="the folder for the copy; it must not exist, or be empty",
    )
    where.add_argument(
        "--in-place",
        action="store_true",
        help="change the project itself; needs a clean git tree, or --force",
    )
    where.add_argument("--dry-run", action="store_true", help="only report what would be done")
    parser.add_argument(
        "--diff", action="store_true", help="print the changes as a unified diff (alone: writes nothing)"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace an earlier output; with --in-place: do without git"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 if anything would change (for CI); writes nothing without -o",
    )
    parser.add_argument("--verbose", action="store_true", help="list everything, without a limit")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no summary")
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Convert, write, summarise, answer with the exit code."""
    writes_nothing = args.dry_run or ((args.diff or args.check) and not args.output and not args.in_place)
    if not (writes_nothing or args.output or args.in_place):
        raise FerryError("say where the converted copy goes: -o DIR (or --in-place, --dry-run, --diff)")
    root = check_input(args.path)
    out = check_output(root, args.output, args.force) if args.output else None
    if args.in_place:
        check_in_place(root, args.force)
    plan = options.make_plan(args)
    with options.progress_bar(f"converting {root.name}", args.quiet) as progress:
        outcome = examine_project(root, plan, skip=[out] if out else [], progress=progress)
    report = outcome.report("convert")
    if out is not None:
        write_project(outcome, out, lambda folder: write_reports(report, folder))
    elif args.in_place:
        write_in_place(outcome)
    _show(args, outcome, report, out)
    return _exit_code(args, outcome)


def write_reports(report: Report, folder: Path) -> None:
    """The reports that go with a converted copy."""
    docs = options.rule_docs()
    for name, form in _REPORTS.items():
        write_report(report, folder / name, form, rule_docs=docs)


def _show(args: argparse.Namespace, outcome: ProjectOutcome, report: Report, out: Path | None) -> None:
    if args.diff:
        from torchferry.report.diff import unified_diff

        sys.stdout.write(unified_diff(report))
        return
    if args.quiet:
        return
    print_report(report, "text", args.lang, verbose=args.verbose, rule_docs=options.rule_docs())
    if out is not None:
        print(
            f"written to {args.output}; open {args.output / 'report.html'} for the details", file=sys.stderr
        )


def _exit_code(args: argparse.Namespace, outcome: ProjectOutcome) -> int:
    if outcome.failed:
        return 3
    changed = any(item.new_data is not None for item in outcome.outcomes)
    return 1 if args.check and changed else 0
