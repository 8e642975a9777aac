"""Say what the errors in a log mean: which came first, why, and what to do."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import show
from torchferry.errors import InputError
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.explanation.model import Explanation
    from torchferry.explanation.rules import RuleBook

_EPILOG = """LOG is a file, also packed (.gz, .bz2, .xz), a folder that is searched for logs (of all ranks of a run, of a vendor's runtime), - for
what comes through a pipe (as without LOG), or a message in quotation marks.

exit codes: 0 fine; 1 with --check: an error was found; 2 no such log or code, bad usage; 3 some logs could not be read, or not whole"""


_READING = Text("reading logs", "正在读取日志")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry explain`."""
    parser.usage = "ferry explain [LOG... | MESSAGE | --code CODE | --list] [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument("logs", nargs="*", metavar="LOG", help="logs of one run (default: standard input)")
    parser.add_argument(
        "--code", metavar="CODE", help="say what an error code means, such as 107002 or EI0006"
    )
    options.add_switch(parser, "--list", "list all rules")
    options.add_to(
        parser, "use this vendor's rules, and those for CUDA and PyTorch (default: those of all vendors)"
    )
    options.add_switch(
        parser,
        "--tee",
        "pass standard input on to standard output as it comes; the report goes to standard error",
    )
    options.add_format(parser)
    options.add_all(parser, "list every finding, not only the first 15")
    options.add_check(parser, "an error was found")
    options.add_quiet(parser)
    options.add_vendor_path(parser)
    options.add_language(parser)


_PIPE = "-"


def run(args: argparse.Namespace) -> int:
    """Explain logs, a message or a code, or list the rules; the answer is an exit code."""
    from torchferry.explanation.explaining import explain_code
    from torchferry.explanation.report import CODES, REPORTS, RULES
    from torchferry.explanation.rules import rule_book

    asked = [args.code is not None, args.list, bool(args.logs)]
    if sum(asked) > 1:
        raise InputError("LOG, --code and --list ask for different things; leave all but one out")
    if args.tee and any(asked) and args.logs != [_PIPE]:
        raise InputError("--tee passes standard input on; leave LOG, --code and --list out")
    book = rule_book([args.to] if args.to else (), args.vendor_path)
    if args.list:
        show(RULES, book.patterns, args)
        return 0
    if args.code is not None:
        findings = explain_code(args.code, book)
        if not findings:
            raise InputError(
                f"{args.code}: no vendor's error code that is known; give the whole message instead"
            )
        show(CODES, findings, args)
        return 0
    explanation = _explanation(args, book)
    show(REPORTS, explanation, args, sys.stderr if args.tee else None)
    if explanation.unread or any(log.damage for log in explanation.logs):
        return 3
    return int(args.check and explanation.cause is not None)


def _explanation(args: argparse.Namespace, book: RuleBook) -> Explanation:
    from torchferry.explanation.explaining import explain_logs, explain_stream, explain_text

    if not args.logs and (sys.stdin is None or sys.stdin.isatty()):
        raise InputError(
            "what is to be explained? give a log, a folder of logs, or a message in quotation marks"
        )
    if args.logs in ([], [_PIPE]) and sys.stdin is not None:
        copy = sys.stdout.buffer if args.tee else None
        try:
            return explain_stream(sys.stdin.buffer, "<stdin>", book, copy)  # type: ignore[arg-type]
        except OSError as error:
            raise InputError(f"standard input can't be read: {error.strerror or error}; give a log") from None
    if len(args.logs) == 1 and _is_message(args.logs[0]):
        return explain_text(args.logs[0], book)
    paths = [Path(log) for log in args.logs]
    with long_task(_READING, args.quiet, Counted.BYTES, options.language_of(args)) as progress:
        return explain_logs(paths, book, progress)


def _is_message(text: str) -> bool:
    if not any(letter.isspace() for letter in text.strip()):
        return False
    try:
        return not Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or with a zero byte
        return True
