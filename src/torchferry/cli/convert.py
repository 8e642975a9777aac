"""Write a converted copy of a project, with reports. The input is never touched, unless you say --in-place.

Version control, caches, environments and earlier outputs that lie in the project are left out of the copy; links
stay links; what can't be read or parsed is reported, and the rest is done (exit code 3)."""

from __future__ import annotations

import argparse
import os
import sys

from torchferry.cli import conversion, next_step, options
from torchferry.cli.output import note_report, report_options, show
from torchferry.conversion import git
from torchferry.conversion.added import add_launch_script
from torchferry.conversion.discover import PYTHON_SUFFIXES, check_input, read_file
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.conversion.rule import rule_docs
from torchferry.conversion.write import (
    Replace,
    Written,
    check_output,
    check_output_file,
    write_file,
    write_in_place,
    write_project,
)
from torchferry.errors import FerryError
from torchferry.report.diff import new_file_diff, unified_diff
from torchferry.report.findings import REPORTS
from torchferry.report.findings.lists import make_lists
from torchferry.report.progress import long_task
from torchferry.report.safe import one_line
from torchferry.report.streams import reader_may_leave
from torchferry.text import Text

_WRITTEN = Text("written to {output}", "已写入 {output}")
_DETAILS = Text("; open {page} for the details", "；详情见 {page}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry convert`."""
    conversion.add_arguments(parser)
    where = parser.add_mutually_exclusive_group()
    options.add_output(
        where,
        None,
        "the folder for the copy and its reports; it must not exist, or be empty. For a single file also "
        "a name that ends in .py: then only that file is written",
        "DIR",
    )
    options.add_switch(
        where, "--in-place", "change the project itself, without reports; needs a clean git tree, or --force"
    )
    options.add_switch(where, "--dry-run", "only report what would be done")
    options.add_switch(parser, "--diff", "print the changes as a unified diff (alone: writes nothing)")
    options.add_switch(
        parser,
        "--lists",
        "also write change_list.csv, unsupported_op.xlsx, unsupported_api.csv, unknown_api.csv, "
        "cuda_op_list.csv and the advice lists, in the columns of ms_fmk_transplt",
    )
    options.add_switch(
        parser,
        "--force",
        "replace the output of an earlier run (nothing else); with --in-place: do without git",
    )
    options.add_check(parser, "anything would change (for CI); writes nothing without -o")
    options.add_switch(parser, "--verbose", "list everything, without a limit")
    options.add_quiet(parser, "no progress bar and no summary")
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Convert, write, summarise, answer with the exit code."""
    writes_nothing = args.dry_run or ((args.diff or args.check) and not args.output and not args.in_place)
    if not (writes_nothing or args.output or args.in_place):
        raise FerryError("say where the converted copy goes: -o DIR (or --in-place, --dry-run, --diff)")
    root = check_input(args.path)
    replace = Replace.OURS if args.force else Replace.NOTHING
    # Whether -o names a file, and so only that is written.
    is_single = bool(args.output) and root.is_file() and args.output.suffix in PYTHON_SUFFIXES
    is_single = is_single and not args.output.is_dir()
    out = None
    if is_single:
        out = check_output_file(root, args.output, args.force)
    elif args.output:
        out = check_output(root, args.output, replace)
    if args.in_place:
        root = root.resolve()
        if not args.force:
            git.check_clean(root)
    plan = conversion.plan_of(args)
    with long_task(conversion.CONVERTING, args.quiet, language=options.language_of(args)) as progress:
        outcome = examine_project(root, plan, skip=[out] if out else [], progress=progress)
    if out is not None and is_single:
        add_launch_script(outcome, plan.settings.distributed, out.name)
    diff = project_diff(outcome) if args.diff else b""
    done = Written()
    if args.in_place:
        if not args.force:
            git.check_tracked(outcome)
        write_in_place(outcome)
    elif out is not None and is_single:
        done = write_file(outcome, out, args.force)
    elif out is not None:
        report = outcome.report("convert")
        reports = conversion.rendered(report, args.lang)
        if args.lists:
            reports |= make_lists(report, options.language_of(args))
        done = write_project(outcome, out, reports, replace)
        note_report(REPORTS, report, report_options(args, rule_docs=rule_docs()))
    conversion.note_written(done)
    try:
        _show(args, outcome, plan, diff, is_single)
        conversion.note_unused_rules(outcome, plan.custom)
    except KeyboardInterrupt as stop:
        raise type(stop)("" if writes_nothing else "interrupted; the conversion is complete") from None
    if done.vanished or outcome.failed:
        return 3
    changed = outcome.added or any(item.new_data is not None for item in outcome.outcomes)
    return 1 if args.check and changed else 0


def project_diff(outcome: ProjectOutcome) -> bytes:
    """What changes in all files; read before anything is written."""
    changed = [
        unified_diff(item.record.path, read_file(os.path.join(outcome.folder, item.path)), item.new_data)
        for item in outcome.outcomes
        if item.new_data is not None
    ]
    added = [new_file_diff(path, file.data, file.executable) for path, file in outcome.added.items()]
    return b"".join(changed + added)


def _show(
    args: argparse.Namespace, outcome: ProjectOutcome, plan: Plan, diff: bytes, is_single: bool
) -> None:
    with reader_may_leave():
        if args.diff:
            sys.stdout.buffer.write(diff)
        elif not args.quiet:
            show(REPORTS, outcome.report("convert"), args, everything=args.verbose, rule_docs=rule_docs())
    conversion.note_nothing(outcome)
    if not args.output or args.quiet:
        return
    language, distributed = options.language_of(args), plan.settings.distributed
    line = _WRITTEN.format(output=args.output).in_language(language)
    if not is_single:
        line += _DETAILS.format(page=args.output / "report.html").in_language(language)
    print(one_line(line), file=sys.stderr)
    main = distributed.main if distributed else ""
    files = (item.path for item in outcome.entries if not (item.is_folder or item.is_link or item.problem))
    script = next_step.training_script(outcome.folder, files)
    hint = next_step.after_conversion(args.path, args.output, outcome.target, main, args.lang, script)
    if hint:
        print(hint, file=sys.stderr)
