"""What `ferry scan`, `ferry convert` and the drop-ins share: their options, and the remarks about what was done."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import note
from torchferry.conversion.custom.model import CustomRules
from torchferry.conversion.discover import PYTHON_SUFFIXES
from torchferry.conversion.planning import OPT_INS, ConversionRequest, cores, find_target, plan_for
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.conversion.rule import rule_docs
from torchferry.conversion.settings import AmpForm, PassSettings
from torchferry.conversion.write import REPORT_FILES, Replace, Written, check_output, write_project
from torchferry.errors import InputError
from torchferry.outcome import Report
from torchferry.report.findings import REPORTS
from torchferry.report.findings.summary import summarize
from torchferry.report.formats import Options
from torchferry.report.progress import long_task
from torchferry.report.streams import reader_may_leave
from torchferry.text import Language, Text, user_language

SCANNING = Text("scanning", "正在扫描")
CONVERTING = Text("converting", "正在转换")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to convert, to what, and how."""
    parser.add_argument("path", type=Path, help="a folder, or a single Python file")
    options.add_to(parser, "a name that `ferry vendors` lists, or `portable`", required=True)
    options.add_switch(
        parser,
        "--keep-cuda",
        "the result runs on the vendor's device, on CUDA and on the CPU; a module that is added decides which",
    )
    options.add_vendor_path(parser)
    _add_selection(parser.add_argument_group("what to look at"))
    _add_opt_ins(parser.add_argument_group("changes that are made only when you ask for them"))
    _add_distributed(parser.add_argument_group("one process per card"))


def _add_selection(group: options.Options) -> None:
    options.add_repeatable(
        group, "--select", "RULE", "only these rules, by id or its beginning: TF1 or TF105,TF201"
    )
    options.add_repeatable(group, "--ignore", "RULE", "all but these rules")
    options.add_repeatable(
        group, "--exclude", "PATTERN", "files or folders neither to look at nor to copy, e.g. 'tests/*'"
    )
    group.add_argument(
        "--rules",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="your own rules: a .toml file, or a .json file in the format of ms_fmk_transplt; repeatable",
    )
    options.add_jobs(group, "processes (default: all cores)", cores())


def _add_opt_ins(group: options.Options) -> None:
    for name, text in OPT_INS.items():
        flags = ["-s"] if name == "specify_device" else []
        group.add_argument(*flags, f"--{name.replace('_', '-')}", action="store_true", help=text)
    group.add_argument(
        "--data-parallel",
        choices=["single"],
        help="single: torch.nn.DataParallel(model) becomes the model itself, on one card, as a vendor's guide does",
    )
    group.add_argument(
        "--amp",
        nargs="?",
        const=AmpForm.TORCH.value,
        choices=[form.value for form in AmpForm],
        help="mixed precision for training steps that have none: torch's autocast and GradScaler, or apex's amp",
    )


def _add_distributed(group: options.Options) -> None:
    options.add_switch(
        group,
        "--distributed",
        "rewrite the training program that --main starts for all cards, with DistributedDataParallel; a launch "
        "script is added",
    )
    group.add_argument(
        "--main", type=Path, metavar="FILE", help="the script that starts the training, in the project"
    )
    group.add_argument(
        "--model",
        default="",
        metavar="NAME",
        help="the variable that holds the model; several with commas (default: found)",
    )
    group.add_argument(
        "--batch",
        choices=["keep", "split"],
        help="the script's batch size is that of each card (keep, the default), or of all together (split)",
    )
    options.add_switch(group, "--sync-batchnorm", "BatchNorm over the batches of all cards (SyncBatchNorm)")


def plan_of(args: argparse.Namespace) -> Plan:
    """The plan that the command line describes."""
    return plan_for(args.path, args.to, **options.chosen(args, ConversionRequest))


def rendered(report: Report, language: Language | None = None) -> dict[str, bytes]:
    """The reports of a converted copy: file name -> bytes."""
    choices = Options(language or user_language(), rule_docs=rule_docs())
    return {name: REPORTS.render(report, form, choices) for name, form in REPORT_FILES.items()}


def note_written(done: Written) -> None:
    """Say what became of files besides the plain ones."""
    for name in done.shadowed:
        note(f"the project's own {name} was not copied: the report has its name")
    for name in done.vanished:
        note(f"{name} was gone when it was to be copied: it is not in the output")
    for path in done.kept:
        note(
            f"what was there is kept as {path}: it holds things that were added or changed since, or that "
            "TorchFerry did not write"
        )


def note_nothing(outcome: ProjectOutcome) -> None:
    """Say so if there was no Python to convert: the path may be the wrong one."""
    if not outcome.outcomes and not any(entry.path.endswith(PYTHON_SUFFIXES) for entry in outcome.entries):
        note(f"no Python files in {outcome.root}")


def note_unused_rules(outcome: ProjectOutcome, custom: CustomRules) -> None:
    """Say which of the user's rules have found nothing: a name may be misspelled."""
    findings = [item for each in outcome.outcomes for item in each.findings if item.rule.startswith("USER")]
    for rule in custom.for_vendor(outcome.target.name):
        last = rule.match.name.rpartition(".")[2]
        if not any(
            item.rule == rule.id
            and (item.message == rule.message or last in item.message.en or last in item.before + item.after)
            for item in findings
        ):
            note(f"your rule for {rule.match.name} ({rule.place}) matched nothing")


# What the drop-ins for vendors' tools share: one way to convert, their files beside ours.


def make_plan(
    vendor: str,
    opt_ins: frozenset[str] = frozenset(),
    custom: CustomRules | None = None,
    settings: PassSettings | None = None,
) -> Plan:
    """A plan for a vendor with all its rules."""
    custom, settings = custom or CustomRules(), settings or PassSettings()
    return Plan(find_target(vendor, []), opt_ins, custom=custom, settings=settings, jobs=cores())


def convert(
    root: Path, out: Path, plan: Plan, make_files: Callable[[Report], dict[str, bytes]], replace: Replace
) -> ProjectOutcome:
    """Convert a project, and write the files of the vendor's tool beside the reports of `ferry convert`."""
    place = check_output(root, out, replace)
    with long_task(CONVERTING) as progress:
        outcome = examine_project(root, plan, skip=[place], progress=progress)
    if not any(not entry.is_folder for entry in outcome.entries):
        raise InputError(f"{root}: is empty; nothing was written")
    report = outcome.report("convert")
    files = {**rendered(report), **make_files(report)}
    note_written(write_project(outcome, place, files, replace))
    note_unused_rules(outcome, plan.custom)
    return outcome


def say(*lines: str) -> None:
    """Print lines that may hold a path with any bytes in it."""
    with reader_may_leave():
        sys.stdout.buffer.write(b"".join(os.fsencode(line) + b"\n" for line in lines))


def finish(outcome: ProjectOutcome, details: str) -> int:
    """Say on stderr what is left to do and where it is described; answer with the exit code."""
    note_nothing(outcome)
    summary = summarize(outcome.report("convert"))
    left = summary.todo + summary.unsupported + summary.unknown
    if left:
        note(f"places that were not converted and need you: {left}; {details} lists them")
    if summary.files_failed:
        note(f"files that could not be processed: {summary.files_failed}; {details} says why")
    return 3 if outcome.failed else 0
