"""`ferry migrate`: all steps of a migration, each as the command that it would be by hand; stops where the user must decide."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.errors import RunError
from torchferry.report.progress import LongTask
from torchferry.report.safe import one_line
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.migration.migrating import Migrating
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
    page="how-to/migrate.md",
)
_WHICH = Text(
    "which program? ferry migrate PROGRAM --to VENDOR [-- ARGUMENTS]",
    "要迁移哪个程序？ferry migrate PROGRAM --to VENDOR [-- ARGUMENTS]",
)
_NOT_BOTH = Text(
    "--resume takes the program and its options from the migration folder; leave {given} out",
    "--resume 从迁移文件夹中读取程序及其选项；请去掉 {given}",
)
_WHERE = Text("The commands below are for the folder {folder}:", "以下命令适用于文件夹 {folder}：")
_STEP = Text("migrating, {name}", "迁移，{name}")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry migrate`."""
    parser.add("program", nargs="?", metavar="PROGRAM", text=Text("Script that trains", "训练脚本"))
    options.add_to(parser)
    options.add_vendor_path(parser)
    text = Text(
        "Project of the program (default: the current folder, or the one around the program that has .git, "
        "pyproject.toml, setup.py or requirements.txt)",
        "程序所在的项目（默认：当前文件夹，或程序外层含有 .git、pyproject.toml、setup.py 或 requirements.txt 的文件夹）",
    )
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
    reader.say_where(migrating.start)
    try:
        migration = migrating.carry_out()
    finally:
        reader.stop()
    if args.format == "json":
        from torchferry.cli.output import show

        show(REPORTS, migration, args)
    else:
        print(last_word(migration, migrating.folder, options.language_of(args)), flush=True)
    return exit_code(migration)


def _started(args: argparse.Namespace, tell: _Reader) -> Migrating:
    from torchferry.migration.starting import start

    if not args.program or not args.to:
        raise RunError(_WHICH)
    return start(
        Path(args.program),
        args.to,
        tell,
        arguments=args.rest,
        project=args.project,
        copy=args.output,
        into=args.into,
        sim=args.sim,
        emulate=args.emulate,
        steps=args.steps,
        seed=args.seed,
        nproc=args.nproc,
        convert_options=shlex.split(args.convert_options),
        vendor_path=args.vendor_path,
    )


def _resumed(args: argparse.Namespace, tell: _Reader) -> Migrating:
    from torchferry.migration.starting import resume

    given = [name for name in ("program", "to", "output", "project") if getattr(args, name)]
    if given:
        raise RunError(_NOT_BOTH.format(given=given[0].upper() if given[0] == "program" else f"--{given[0]}"))
    return resume(tell, args.into)


class _Reader:
    """Tells how far the migration is, as it goes: each step as it ends, and on stderr what is going on meanwhile."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._is_quiet = args.quiet or args.format == "json"
        self._language = options.language_of(args)
        self._task: LongTask | None = None

    def __call__(self, step: MigrationStep, begins: bool) -> None:
        from torchferry.migration.report import step_lines

        self.stop()
        if self._is_quiet:
            return
        if begins:
            self._begin(step)
            return
        for line in step_lines(step, self._language):
            print(one_line(line), flush=True)

    def say_where(self, folder: Path) -> None:
        """Where the commands of the steps can be typed, if that is not here."""
        if folder != Path.cwd() and not self._is_quiet:
            print(_WHERE.format(folder=os.path.relpath(folder)).in_language(self._language), flush=True)

    def _begin(self, step: MigrationStep) -> None:
        self._task = LongTask(_STEP.format(name=step.name), language=self._language)
        self._task.start()

    def stop(self) -> None:
        """Take the line from the terminal."""
        if self._task is not None:
            self._task.stop()
            self._task = None
