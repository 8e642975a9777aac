"""What the drop-ins for vendors' tools share: one way to convert, their files beside ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from torchferry.cli import conversion, output
from torchferry.conversion.custom.model import CustomRules
from torchferry.conversion.planning import cores, find_target
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.conversion.settings import PassSettings
from torchferry.conversion.write import REPORT_FILES, Replace, check_output, write_project
from torchferry.errors import InputError
from torchferry.outcome import Report
from torchferry.report.findings.summary import summarize
from torchferry.report.progress import progress_bar
from torchferry.report.streams import reader_may_leave
from torchferry.text import user_language

MakeFiles = Callable[[Report], dict[str, bytes]]


def make_plan(
    vendor: str,
    opt_ins: frozenset[str] = frozenset(),
    custom: CustomRules | None = None,
    settings: PassSettings | None = None,
) -> Plan:
    """A plan for a vendor with all its rules."""
    target = find_target(vendor, [])
    return Plan(
        target,
        opt_ins,
        custom=custom or CustomRules(),
        settings=settings or PassSettings(),
        jobs=cores(),
    )


def convert(root: Path, out: Path, plan: Plan, make_files: MakeFiles, replace: Replace) -> ProjectOutcome:
    """Convert a project, and write the files of the vendor's tool beside the reports of `ferry convert`."""
    place = check_output(root, out, replace)
    with progress_bar(unit="files") as progress:
        outcome = examine_project(root, plan, skip=[place], progress=progress)
    if not any(not entry.is_folder for entry in outcome.entries):
        raise InputError(f"{root}: is empty; nothing was written")
    report = outcome.report("convert")
    files = {**conversion.rendered(report, user_language(), REPORT_FILES), **make_files(report)}
    conversion.note_written(write_project(outcome, place, files, replace))
    conversion.note_unused_rules(outcome, plan.custom)
    return outcome


def say(*lines: str) -> None:
    """Print lines that may hold a path with any bytes in it."""
    with reader_may_leave():
        sys.stdout.buffer.write(b"".join(os.fsencode(line) + b"\n" for line in lines))


def finish(outcome: ProjectOutcome, details: str) -> int:
    """Say on stderr what is left to do and where it is described; answer with the exit code."""
    conversion.note_nothing(outcome)
    summary = summarize(outcome.report("convert"))
    left = summary.todo + summary.unsupported + summary.unknown
    if left:
        output.note(f"places that were not converted and need you: {left}; {details} lists them")
    if summary.files_failed:
        output.note(f"files that could not be processed: {summary.files_failed}; {details} says why")
    return 3 if outcome.failed else 0
