"""Migrate a program to another accelerator: check the machine, scan, list operators, convert, run, prove and report, each step
as the command that it would be by hand. Stops where you must decide; `--resume` goes on from there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.errors import InputError, RunError
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.migration.migrating import Migrating
    from torchferry.migration.request import MigrationRequest
    from torchferry.migration.steps import MigrationStep

_EPILOG = """exit codes: 0 all steps are done and the proof holds; 1 you must decide something, or the proof does not hold; 2 bad usage;
3 a step failed; 130 interrupted, `ferry migrate --resume` goes on"""
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry migrate`."""
    parser.usage = (
        "ferry migrate PROGRAM --to VENDOR [OPTIONS] [-- ARGUMENTS of the program]\n"
        "       ferry migrate --resume [--accept NAME ...]"
    )
    parser.epilog = _EPILOG
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help="Script that trains")
    options.add_to(parser, "Target vendor")
    options.add_vendor_path(parser)
    parser.add_argument(
        "--project",
        type=Path,
        metavar="DIR",
        help="Project of the program (default: the current folder)",
    )
    options.add_output(parser, None, "Folder for the converted copy (default: beside the project)", "DIR")
    options.add_means(
        parser.add_argument_group("Device"),
        "Use the simulated device even if the vendor's plugin is installed",
        "Use the vendor's own plugin on an emulated device",
    )
    options.add_steps(parser, "Optimizer steps that are run and proved (default: 20)", 20)
    options.add_seed(parser, "Random seed of the proof (default: 0)", 0)
    parser.add_argument(
        "--nproc", type=options.at_least_one, default=0, metavar="N", help="Processes, started by torchrun"
    )
    parser.add_argument(
        "--convert-options",
        default="",
        metavar="OPTIONS",
        help="Further options of `ferry convert`, for example '--amp --data-parallel single'",
    )
    options.add_switch(parser, "--resume", "Continue the migration that was begun here")
    options.add_repeatable(
        parser, "--accept", "NAME", "Go on in spite of a blocker (TF204), a missing operator or a failed step"
    )
    options.add_repeatable(parser, "--revoke", "NAME", "Take back what --accept has accepted")
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="Migration folder (default: .ferry in the project's folder)"
    )
    options.add_json(parser, "Print the result as JSON")
    options.add_quiet(parser, "Print the result only")
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
