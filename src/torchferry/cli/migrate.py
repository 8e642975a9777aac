"""`ferry migrate`: all steps of a migration, each as the command that it would be by hand; stops where the user must decide."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.errors import InputError, RunError
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.migration.migrating import Migrating
    from torchferry.migration.request import MigrationRequest
    from torchferry.migration.steps import MigrationStep

ABOUT = About(
    Text(
        "Checks the machine, scans, lists operators, converts, runs, proves and reports, each step as the command that "
        "it would be by hand. It stops where you must decide; --resume goes on from there. Results are kept in a "
        "migration folder, of which `ferry report` makes one page.",
        "依次检查机器、扫描、列出算子、转换、运行、验证并生成报告，每一步都等同于手工执行的命令。需要您决定时会停下；--resume "
        "从该处继续。结果保存在迁移文件夹中，`ferry report` 可汇总为一个页面。",
    ),
    (
        Example(
            "ferry migrate train.py --to ascend -- --epochs 1",
            Text("Migrate a program with its arguments", "迁移程序并传入参数"),
        ),
        Example(
            "ferry migrate --resume --accept TF204",
            Text("Go on in spite of a blocker", "忽略一个阻塞项并继续"),
        ),
    ),
    usage=("PROGRAM --to VENDOR [OPTIONS] [-- ARGUMENTS of the program]", "--resume [--accept NAME ...]"),
    exit_codes=(
        ("0", Text("All steps are done and the proof holds", "所有步骤完成，验证通过")),
        ("1", Text("You must decide something, or the proof does not hold", "需要您决定，或验证未通过")),
        ("3", Text("A step failed", "某一步失败")),
        (
            "130",
            Text("Interrupted; `ferry migrate --resume` goes on", "被中断；`ferry migrate --resume` 可继续"),
        ),
    ),
    page="tutorial.md",
)
_WHICH = Text(
    "which program? ferry migrate PROGRAM --to VENDOR [-- ARGUMENTS]",
    "要迁移哪个程序？ferry migrate PROGRAM --to VENDOR [-- ARGUMENTS]",
)
_NOT_BOTH = Text(
    "--resume takes the program and its options from the migration folder; leave {given} out",
    "--resume 从迁移文件夹中读取程序及其选项；请去掉 {given}",
)
_NO_SCRIPT = Text(
    "{path}: no such script; name the program that trains", "{path}：没有该脚本；请指定训练程序"
)
_NO_FOLDER = Text(
    "no migration folder found here; name it with --into, or start with `ferry migrate PROGRAM --to VENDOR`",
    "此处没有迁移文件夹；请用 --into 指定，或先运行 `ferry migrate PROGRAM --to VENDOR`",
)
_STARTS = Text("{name} ({command})", "{name}（{command}）")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry migrate`."""
    parser.add("program", nargs="?", metavar="PROGRAM", text=Text("Script that trains", "训练脚本"))
    options.add_to(parser)
    options.add_vendor_path(parser)
    text = Text("Project of the program (default: the current folder)", "程序所在的项目（默认：当前文件夹）")
    parser.add("--project", type=Path, metavar="DIR", text=text)
    text = Text(
        "Folder for the converted copy (default: beside the project)", "转换副本的文件夹（默认：在项目旁边）"
    )
    options.add_output(parser, None, text, "DIR")
    options.add_means(parser.group(options.DEVICE))
    text = Text(
        "Number of optimizer steps to run and prove (default: 20)", "运行和验证的优化器步数（默认：20）"
    )
    options.add_steps(parser, text, 20)
    options.add_seed(
        parser, Text("Random seed of the proof (default: 0)", "验证使用的随机种子（默认：0）"), 0
    )
    text = Text("Number of processes, started by torchrun", "由 torchrun 启动的进程数")
    parser.add("--nproc", type=options.at_least_one, default=0, metavar="N", text=text)
    text = Text(
        "Further options of `ferry convert`, for example '--amp --data-parallel single'",
        "`ferry convert` 的其他选项，例如 '--amp --data-parallel single'",
    )
    parser.add("--convert-options", default="", metavar="OPTIONS", text=text)
    group = parser.group(Text("Going on", "继续迁移"))
    options.add_switch(
        group, "--resume", Text("Continue the migration that was begun here", "继续在此处开始的迁移")
    )
    text = Text(
        "Go on in spite of a blocker (TF204), a missing operator or a failed step",
        "忽略某个阻塞项（TF204）、缺失算子或失败的步骤并继续",
    )
    options.add_repeatable(group, "--accept", "NAME", text)
    options.add_repeatable(
        group, "--revoke", "NAME", Text("Take back what --accept has accepted", "撤销 --accept 接受的项")
    )
    text = Text(
        "Migration folder (default: .ferry in the project's folder)",
        "迁移文件夹（默认：项目文件夹中的 .ferry）",
    )
    parser.add("--into", type=Path, metavar="DIR", text=text)
    options.add_format(parser, options.SUMMARY_FORMATS)
    options.add_quiet(parser)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Migrate, or go on; the answer is an exit code."""
    from torchferry.migration.migrating import exit_code
    from torchferry.migration.report import REPORTS, last_word

    reader = _Reader(args)
    migrating = _resumed(args, reader) if args.resume else _started(args, reader)
    migrating.accept(
        *([name for given in names for name in options.names(given)] for names in (args.accept, args.revoke))
    )
    with reader:
        migration = migrating.carry_out()
    if args.format == "json":
        from torchferry.cli.output import show

        show(REPORTS, migration, args)
    else:
        print(last_word(migration, migrating.folder, options.language_of(args)), flush=True)
    return exit_code(migration)


def _started(args: argparse.Namespace, tell: _Reader) -> Migrating:
    from torchferry.migration.folder import NAME, open_or_make
    from torchferry.migration.migrating import Migrating

    if not args.program:
        raise RunError(_WHICH)
    if not args.to:
        raise RunError(_WHICH)
    script, here = Path(args.program), Path.cwd()
    if not script.is_file():
        raise InputError(_NO_SCRIPT.format(path=script))
    is_below = script.resolve().is_relative_to(here.resolve())
    project = args.project or (here if is_below else script.parent)
    folder = open_or_make(args.into or project / NAME, project.resolve().name)
    return Migrating(folder, _request(args, script, project, here), project.resolve(), tell, resume=False)


def _request(args: argparse.Namespace, script: Path, project: Path, here: Path) -> MigrationRequest:
    import shlex

    from torchferry.launch import plugin
    from torchferry.launch.place import DeviceKind
    from torchferry.migration.request import request_of

    vendor = get_vendor(args.to, args.vendor_path)
    kind = plugin.choose(vendor, args.sim, args.emulate, may_emulate=False).kind
    means = {DeviceKind.SIMULATED: "sim", DeviceKind.EMULATED: "emulate"}.get(kind, "")
    return request_of(
        script,
        project,
        here,
        vendor.device_type,
        args.output,
        to=vendor.name,
        arguments=tuple(args.rest),
        means=means,
        steps=args.steps,
        seed=args.seed,
        nproc=args.nproc,
        convert_options=tuple(shlex.split(args.convert_options)),
        vendor_paths=options.vendor_paths(args),
    )


def _resumed(args: argparse.Namespace, tell: _Reader) -> Migrating:
    from torchferry.migration.folder import find, open_or_make
    from torchferry.migration.migrating import Migrating, load

    given = [name for name in ("program", "to", "output", "project") if getattr(args, name)]
    if given:
        raise RunError(_NOT_BOTH.format(given=given[0].upper() if given[0] == "program" else f"--{given[0]}"))
    folder = open_or_make(args.into) if args.into else find(Path.cwd())
    if folder is None:
        raise InputError(_NO_FOLDER)
    earlier = load(folder)
    project = (folder.path / earlier.root).resolve()
    return Migrating(folder, earlier.request, project, tell, resume=True)


class _Reader:
    """Tells how far the migration is, as it goes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._is_quiet = args.quiet or args.format == "json"
        self._args = args

    def __call__(self, step: MigrationStep, begins: bool) -> None:
        from torchferry.migration.report import step_lines

        if self._is_quiet or begins:
            return
        for line in step_lines(step, options.language_of(self._args)):
            print(one_line(line), flush=True)

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_error: object) -> None:
        sys.stdout.flush()
