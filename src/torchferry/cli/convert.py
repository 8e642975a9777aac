"""`ferry convert`: a converted copy of a project, with reports; the input is not touched, unless --in-place says so."""

from __future__ import annotations

import argparse
import os
import sys

from torchferry.cli import conversion, next_step, options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import exit_code, note_report, report_options, show
from torchferry.conversion import git
from torchferry.conversion.added import add_launch_script
from torchferry.conversion.discover import PYTHON_SUFFIXES, check_input, read_file
from torchferry.conversion.examples import rule_docs
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
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
from torchferry.text import NOTHING, Text

_INTERRUPTED = Text("interrupted; the conversion is complete", "已中断；转换已经完成")
_WRITTEN = Text("written to {output}", "已写入 {output}")
_DETAILS = Text("; open {page} for the details", "；详情见 {page}")


ABOUT = About(
    Text(
        "Writes a converted copy of a project with report.html and findings.json. The input is not changed, unless you "
        "use --in-place. Version control, caches and environments are left out of the copy; links stay links; "
        "files that can't be read or parsed are reported, and the others are converted.",
        "写出项目的转换副本，并附 report.html 和 findings.json。除非使用 --in-place，输入保持不变。版本库、缓存和虚拟环境不进入"
        "副本；链接仍为链接；无法读取或解析的文件会列入报告，其余文件照常转换。",
    ),
    (
        Example(
            "ferry convert my_project --to ascend -o my_project_npu",
            Text("Write a converted copy and its reports", "写出转换后的副本及其报告"),
        ),
        Example(
            "ferry convert my_project --to ascend --diff",
            Text("Dry run: print the changes as a diff", "试运行：以 diff 形式输出修改"),
        ),
        Example(
            "ferry convert my_project --to mlu --distributed --main train.py -o my_project_mlu",
            Text("Also rewrite the program for all cards", "同时将程序改写为多卡训练"),
        ),
    ),
    exit_codes=(
        ("1", Text("With --check: something would change", "使用 --check 时：存在需要修改的内容")),
        ("3", Text("Some files could not be converted; the others were", "部分文件未能转换，其余已转换")),
    ),
    page="how-to/convert.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry convert`."""
    conversion.add_arguments(parser)
    group = parser.group(Text("What is written", "写入内容"))
    where = group.either()
    text = Text(
        "Folder for the copy and its reports; must not exist or be empty. For a single file also a name ending in "
        ".py: then only that file is written",
        "副本及报告的文件夹；必须不存在或为空。输入为单个文件时也可以是以 .py 结尾的文件名：只写该文件",
    )
    options.add_output(where, None, text, "DIR")
    text = Text(
        "Change the project itself, without reports; needs a clean git tree or --force",
        "直接修改项目本身，不写报告；需要干净的 git 工作区或 --force",
    )
    options.add_switch(where, "--in-place", text)
    options.add_switch(
        where, "--dry-run", Text("Only report what would be done", "试运行：只报告将要进行的修改")
    )
    text = Text(
        "Print the changes as a unified diff (alone: nothing is written)",
        "以 unified diff 输出修改（单独使用时不写入任何内容）",
    )
    options.add_switch(group, "--diff", text)
    text = Text(
        "Also write change_list.csv, unsupported_op.xlsx, unsupported_api.csv, unknown_api.csv, cuda_op_list.csv and "
        "the advice lists, with the columns of ms_fmk_transplt",
        "同时写出 change_list.csv、unsupported_op.xlsx、unsupported_api.csv、unknown_api.csv、cuda_op_list.csv 和建议清单，"
        "列与 ms_fmk_transplt 相同",
    )
    options.add_switch(group, "--lists", text)
    text = Text(
        "Replace the output of an earlier run (nothing else); with --in-place: work without git",
        "替换先前运行的输出（仅此而已）；配合 --in-place 时：不要求 git",
    )
    options.add_force(group, text)
    group = parser.group(options.REPORTS)
    formats = [name for name in REPORTS.names if name not in REPORTS.only_files]
    text = Text("Format of the printed summary (default: text)", "输出摘要的格式（默认：text）")
    options.add_format(group, formats, text)
    text = Text(
        "anything would change (for CI); nothing is written without -o",
        "存在需要修改的内容（用于 CI；没有 -o 时不写入）",
    )
    options.add_check(group, text)
    options.add_verbose(group, old=())
    options.add_quiet(group)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Convert, write, summarise, answer with the exit code."""
    writes_nothing = args.dry_run or ((args.diff or args.check) and not args.output and not args.in_place)
    if not (writes_nothing or args.output or args.in_place):
        raise FerryError(
            Text(
                "say where the converted copy goes: -o DIR (or --in-place, --dry-run, --diff)",
                "请指定转换副本的位置：-o DIR（或 --in-place、--dry-run、--diff）",
            )
        )
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
        conversion.note_unused_rules([outcome], plan.custom)
    except KeyboardInterrupt as stop:
        said = NOTHING if writes_nothing else _INTERRUPTED
        raise type(stop)(said.in_language(options.language_of(args))) from None
    changed = bool(outcome.added) or any(item.new_data is not None for item in outcome.outcomes)
    return exit_code(is_found=args.check and changed, is_partial=bool(done.vanished) or outcome.failed)


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
    scripts = next_step.training_scripts(outcome.folder, files)
    hints = next_step.after_conversion(
        args.path, args.output, outcome.target, main, scripts, args.vendor_path
    )
    for hint in hints:
        print(hint.in_language(language), file=sys.stderr)
