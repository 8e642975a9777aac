"""Commands that add their result to a migration folder: the option --into, and what happens around a command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import variables
from torchferry.cli import options
from torchferry.cli.output import write
from torchferry.errors import InputError
from torchferry.text import Text, user_language

if TYPE_CHECKING:
    from torchferry.cli.grammar import Parser
    from torchferry.migration.adding import Adding
    from torchferry.migration.folder import MigrationFolder

Run = Callable[[argparse.Namespace], int]
NOWHERE = "-"
_ADDED = Text(
    "result added to {folder} as run {number}; `ferry report` makes one page of all",
    "结果已添加到 {folder}（第 {number} 次运行）；`ferry report` 可将全部结果生成一页",
)
_NOT_ADDED = Text("result not added to {folder} ({reason})", "结果未能添加到 {folder}（{reason}）")


_INTO = Text(
    "Add the result to this migration folder, made if it does not exist (default: the .ferry folder of the project, if "
    "there is one; - for none)",
    "将结果添加到该迁移文件夹，不存在则创建（默认：项目的 .ferry 文件夹，如果有；- 表示不添加）",
)


def add_into(command: str, parser: Parser) -> None:
    """Add --into, which names a migration folder, to a command that has results."""
    from torchferry.migration.stages import KEEPERS

    if command in KEEPERS:
        for each in parser.verbs.values() or [parser]:
            each.add("--into", type=Path, metavar="DIR", text=_INTO)


def keeping(command: str, run: Run) -> Run:
    """What runs the command; the result of one that takes --into is added to the migration folder, if there is one."""
    from torchferry.migration.stages import KEEPERS

    if command not in KEEPERS:
        return run

    def run_and_add(args: argparse.Namespace) -> int:
        folder = _folder(args)
        if folder is None:
            return run(args)
        from torchferry.migration.adding import Adding

        adding = Adding(folder, command, os.environ.pop(variables.BY_HAND, ""))
        try:
            with adding.collecting():
                adding.exit_code = run(args)
        finally:
            _say(args, adding)
        return adding.exit_code

    return run_and_add


def _folder(args: argparse.Namespace) -> MigrationFolder | None:
    """The one that --into names; else that of the project, if it has one."""
    if args.into is not None and str(args.into) == NOWHERE:
        return None
    from torchferry.migration.folder import find, open_or_make

    if args.into is not None:
        return open_or_make(args.into)
    path = getattr(args, "path", None)
    path = Path(path[0]) if isinstance(path, list) else path
    return find(path if isinstance(path, Path) and path.is_dir() else Path.cwd())


def _say(args: argparse.Namespace, adding: Adding) -> None:
    if getattr(args, "quiet", False):
        return
    path = os.path.relpath(adding.folder.path)
    if adding.added is not None:
        said = _ADDED.format(folder=path, number=adding.added.number)
    elif adding.problem is not None:
        said = _NOT_ADDED.format(folder=path, reason=adding.problem)
    else:
        return
    language = getattr(args, "lang", None) or user_language()
    print(f"note: {said.in_language(language)}", file=sys.stderr, flush=True)


# The page of a migration folder.

_WRITTEN = Text("Page written to {path}", "页面已写入 {path}")
_NO_FOLDER = Text(
    "no migration folder here; name one, or give a findings.json; `ferry migrate PROGRAM --to VENDOR` and "
    "`ferry scan . --to VENDOR --into .ferry` make one",
    "此处没有迁移文件夹；请指定一个，或给出 findings.json；`ferry migrate PROGRAM --to VENDOR` 和 "
    "`ferry scan . --to VENDOR --into .ferry` 可创建",
)
_ONLY_A_PAGE = Text(
    "--format {format}: a migration folder is made into a page only; its reports as JSON are in runs/*/report.json",
    "--format {format}：迁移文件夹只能生成页面；其 JSON 报告在 runs/*/report.json 中",
)


def make_page(args: argparse.Namespace) -> int:
    """Write the page of the folder that is named, or of the project's."""
    from torchferry.migration.folder import NAME, MigrationFolder, find, is_migration_folder
    from torchferry.migration.index import index_page, write_index
    from torchferry.migration.ticks import keep_ticks

    named: Path | None = args.findings
    folder = find(Path.cwd()) if named is None else None
    if named is not None:
        folder = next(
            (MigrationFolder(path) for path in (named, named / NAME) if is_migration_folder(path)), None
        )
    if folder is None:
        raise InputError(_NO_FOLDER)
    if args.format not in (None, "html"):
        raise InputError(_ONLY_A_PAGE.format(format=args.format))
    if args.ticks is not None:
        keep_ticks(folder, args.ticks)
    language = options.language_of(args)
    if str(args.output) == "-":
        write(index_page(folder, language))
        return 0
    path = write_index(folder, language, args.output)
    print(_WRITTEN.format(path=os.path.relpath(path)).in_language(language), file=sys.stderr)
    return 0
