"""What `ferry scan`, `ferry convert` and the drop-ins share: their options, and the remarks about what was done."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.grammar import Group, Parser
from torchferry.cli.output import note
from torchferry.conversion.custom.model import CustomRules
from torchferry.conversion.discover import PYTHON_SUFFIXES
from torchferry.conversion.examples import rule_docs
from torchferry.conversion.planning import OPT_INS, ConversionRequest, cores, find_target, plan_for
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
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


def add_arguments(parser: Parser, several: bool = False) -> None:
    """What to convert, to what, and how."""
    if several:
        text = Text(
            "Folders and files to scan, globs too (default: the current folder)",
            "要扫描的文件夹和文件，可用通配符（默认：当前文件夹）",
        )
        parser.add("path", nargs="*", default=["."], metavar="PATH", text=text)
        options.add_to(parser, _TO_SEVERAL, required=True, metavar="VENDOR[,VENDOR]")
    else:
        parser.add(
            "path",
            type=Path,
            metavar="PATH",
            text=Text("Folder or single Python file", "文件夹或单个 Python 文件"),
        )
        options.add_to(parser, _TO, required=True)
    text = Text(
        "Keep CUDA and the CPU working beside the vendor's device; an added module decides at run time",
        "在支持厂商设备的同时保留 CUDA 和 CPU；由新增的模块在运行时决定",
    )
    options.add_switch(parser, "--keep-cuda", text)
    options.add_vendor_path(parser)
    _add_selection(parser.group(Text("What to look at", "处理范围")))
    _add_opt_ins(parser.group(Text("Optional changes, made only on request", "可选修改（仅在指定时进行）")))
    _add_distributed(parser.group(Text("One process per card", "每卡一个进程")))


_TO = Text(
    "Target: a vendor by name or device type (`ferry vendors` lists them), or `portable` for code that names no vendor",
    "目标：厂商名称或设备类型（`ferry vendors` 列出全部），或 `portable`，即不指明厂商的代码",
)
_TO_SEVERAL = Text(
    "Target: a vendor by name or device type, or `portable`; several with commas, or `all`, are compared",
    "目标：厂商名称或设备类型，或 `portable`；以逗号分隔多个或写 `all` 时进行比较",
)


def _add_selection(group: Group) -> None:
    text = Text(
        "Use only these rules, by id or its beginning: TF1 or TF105,TF201",
        "只使用这些规则，写编号或其开头：TF1 或 TF105,TF201",
    )
    options.add_repeatable(group, "--select", "RULE", text)
    options.add_repeatable(group, "--ignore", "RULE", Text("Use all rules except these", "不使用这些规则"))
    text = Text(
        "Skip files and folders that match, for example 'tests/*'", "跳过匹配的文件和文件夹，例如 'tests/*'"
    )
    options.add_repeatable(group, "--exclude", "PATTERN", text)
    text = Text(
        "Add your own rules: a .toml file, or a .json file in the format of ms_fmk_transplt",
        "添加自定义规则：.toml 文件，或 ms_fmk_transplt 格式的 .json 文件",
    )
    options.add_repeatable(group, "--rules", "FILE", text, type=Path)
    options.add_jobs(group, options.PROCESSES, cores())


def _add_opt_ins(group: Group) -> None:
    for name, text in OPT_INS.items():
        old = ("-s",) if name == "specify_device" else ()
        options.add_switch(group, f"--{name.replace('_', '-')}", text, old)
    text = Text(
        "single: replace torch.nn.DataParallel(model) by the model itself, for one card",
        "single：将 torch.nn.DataParallel(model) 替换为模型本身，单卡运行",
    )
    group.add("--data-parallel", choices=["single"], text=text)
    text = Text(
        "Add mixed precision to training steps without it: autocast and GradScaler of torch (default), or apex",
        "为未使用混合精度的训练步添加混合精度：torch 的 autocast 和 GradScaler（默认），或 apex",
    )
    forms = [form.value for form in AmpForm]
    group.add("--amp", nargs="?", const=AmpForm.TORCH.value, choices=forms, text=text)


def _add_distributed(group: Group) -> None:
    text = Text(
        "Rewrite the program that --main names for all cards with DistributedDataParallel, and add a launch script",
        "用 DistributedDataParallel 将 --main 指定的程序改写为多卡训练，并添加启动脚本",
    )
    options.add_switch(group, "--distributed", text)
    text = Text("Script of the project that starts the training", "项目中启动训练的脚本")
    group.add("--main", type=Path, metavar="FILE", text=text)
    text = Text(
        "Variable that holds the model; several with commas (default: detected)",
        "保存模型的变量名；多个以逗号分隔（默认：自动识别）",
    )
    group.add("--model-name", old=("--model",), dest="model", default="", metavar="NAME", text=text)
    text = Text(
        "Meaning of the script's batch size: per card (keep, the default) or for all cards together (split)",
        "脚本中批大小的含义：每张卡（keep，默认）或所有卡合计（split）",
    )
    group.add("--batch", choices=["keep", "split"], text=text)
    text = Text(
        "Compute BatchNorm over the batches of all cards (SyncBatchNorm)",
        "在所有卡的批次上计算 BatchNorm（SyncBatchNorm）",
    )
    options.add_switch(group, "--sync-batchnorm", text)


def plan_of(args: argparse.Namespace) -> Plan:
    """The plan that the command line describes."""
    return plan_for(args.path, args.to, **options.chosen(args, ConversionRequest))


def rendered(report: Report, language: Language | None = None) -> dict[str, bytes]:
    """The reports of a converted copy: file name -> bytes."""
    choices = Options(language or user_language(), rule_docs=rule_docs())
    return {name: REPORTS.render(report, form, choices) for name, form in REPORT_FILES.items()}


_SHADOWED = Text(
    "the project's own {name} was not copied: the report has that name",
    "未复制项目自身的 {name}：报告使用了该名称",
)
_VANISHED = Text(
    "{name} disappeared before it could be copied; it is not in the output",
    "{name} 在复制之前已消失，输出中没有该文件",
)
_KEPT = Text(
    "what was there is kept as {path}: it holds things that were added or changed since, or that TorchFerry did not write",
    "原有内容保留为 {path}：其中有后来添加或修改的内容，或并非由 TorchFerry 写出的内容",
)
_NO_PYTHON = Text("no Python files in {folder}", "{folder} 中没有 Python 文件")
_UNUSED_RULE = Text(
    "your rule for {name} ({place}) matched nothing", "您为 {name} 编写的规则（{place}）没有匹配到任何内容"
)
_LEFT = Text(
    "places that were not converted and need you: {count}; {details} lists them",
    "未转换、需要您处理的位置：{count} 处；见 {details}",
)
_UNREAD = Text(
    "files that could not be processed: {count}; {details} says why",
    "未能处理的文件：{count} 个；原因见 {details}",
)


def note_written(done: Written) -> None:
    """Say what became of files besides the plain ones."""
    for name in done.shadowed:
        note(_SHADOWED.format(name=name))
    for name in done.vanished:
        note(_VANISHED.format(name=name))
    for path in done.kept:
        note(_KEPT.format(path=path))


def note_nothing(outcome: ProjectOutcome) -> None:
    """Say so if there was no Python to convert: the path may be the wrong one."""
    if not outcome.outcomes and not any(entry.path.endswith(PYTHON_SUFFIXES) for entry in outcome.entries):
        note(_NO_PYTHON.format(folder=outcome.root))


def note_unused_rules(projects: Sequence[ProjectOutcome], custom: CustomRules) -> None:
    """Say which of the user's rules have found nothing: a name may be misspelled."""
    outcomes = [each for project in projects for each in project.outcomes]
    findings = [item for each in outcomes for item in each.findings if item.rule.startswith("USER")]
    for rule in custom.for_vendor(projects[0].target.name):
        last = rule.match.name.rpartition(".")[2]
        if not any(
            item.rule == rule.id
            and (item.message == rule.message or last in item.message.en or last in item.before + item.after)
            for item in findings
        ):
            note(_UNUSED_RULE.format(name=rule.match.name, place=rule.place))


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
        raise InputError(Text(f"{root}: empty; nothing was written", f"{root}：为空；未写入任何内容"))
    report = outcome.report("convert")
    files = {**rendered(report), **make_files(report)}
    note_written(write_project(outcome, place, files, replace))
    note_unused_rules([outcome], plan.custom)
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
        note(_LEFT.format(count=left, details=details))
    if summary.files_failed:
        note(_UNREAD.format(count=summary.files_failed, details=details))
    return 3 if outcome.failed else 0
