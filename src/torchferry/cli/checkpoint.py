"""Say what is inside a checkpoint file without running anything of it, or write a mended copy."""

from __future__ import annotations

import argparse
import sys

from torchferry.cli import checkpoint_options
from torchferry.errors import RunError
from torchferry.text import user_language

add_arguments = checkpoint_options.add_arguments


def run(args: argparse.Namespace) -> int:
    """Read, and say or write; the answer is an exit code."""
    return _fix(args) if args.action == "fix" else _info(args)


def _info(args: argparse.Namespace) -> int:
    from torchferry.checkpoint.classes import Meaning, named
    from torchferry.checkpoint.reading import read
    from torchferry.checkpoint.report import page_of, to_json
    from torchferry.cli.ending import reader_may_leave
    from torchferry.report.page import print_page
    from torchferry.report.safe import printable

    contents = read(args.file)
    with reader_may_leave():
        if args.json:
            sys.stdout.write(printable(to_json(contents)))
        else:
            language = args.lang or user_language()
            print_page(page_of(contents, language, everything=args.all), language)
    return int(args.check and bool(named(contents.globals, Meaning.DANGEROUS)))


def _fix(args: argparse.Namespace) -> int:
    from torchferry.checkpoint.repair import Repair
    from torchferry.checkpoint.report import repaired_page
    from torchferry.cli import next_step
    from torchferry.report.page import print_page

    try:
        from torchferry.checkpoint.fixing import repair
    except ModuleNotFoundError as error:
        raise RunError(f"ferry checkpoint fix needs {error.name}; pip install {error.name}") from None
    if args.allow_pickle:
        print("ferry: --allow-pickle: code that the file names may run", file=sys.stderr)
    asked = Repair(
        args.only,
        tuple(args.strip),
        tuple(args.map),
        args.allow_pickle,
        args.force,
        tuple(args.rename),
        args.dtype,
        args.plain,
    )
    done = repair(args.file, args.output, asked)
    print_page(repaired_page(done), args.lang or user_language())
    if done.is_state_dict:
        print(f"\n{next_step.after_mending(args.output, args.lang)}")
    return 0
