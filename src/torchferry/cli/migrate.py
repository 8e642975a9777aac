"""Migrate a program to another accelerator: check the machine, scan, list operators, convert, run, prove and report, each step
as the command that it would be by hand. Stops where you must decide; `--resume` goes on from there.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.errors import RunError
from torchferry.report.safe import one_line
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.migration.migrating import Migrating
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
