"""Say what the errors in a log mean: which came first, why, and what to do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from torchferry.cli import explain_options
from torchferry.cli.progress import Bar
from torchferry.errors import InputError
from torchferry.text import user_language

if TYPE_CHECKING:
    from torchferry.explain.model import Explanation
    from torchferry.explain.rules import RuleBook
    from torchferry.report.page import Page

add_arguments = explain_options.add_arguments

_SOME_UNREAD = 3
_PIPE = "-"


def run(args: argparse.Namespace) -> int:
    """Explain logs, a message or a code, or list the rules; the answer is an exit code."""
    from torchferry.explain.rules import rule_book

    asked = [args.code is not None, args.list, bool(args.logs)]
    if sum(asked) > 1:
        raise InputError("LOG, --code and --list ask for different things; leave all but one out")
    if args.tee and any(asked) and args.logs != [_PIPE]:
        raise InputError("--tee passes standard input on; leave LOG, --code and --list out")
    book = rule_book([args.to] if args.to else (), args.vendor_path)
    if args.list:
        return _list_rules(args, book)
    if args.code is not None:
        return _explain_code(args, book)
    explanation = _explanation(args, book)
    _report(args, explanation)
    if explanation.unread or any(log.damage for log in explanation.logs):
        return _SOME_UNREAD
    return int(args.check and explanation.cause is not None)


def _explanation(args: argparse.Namespace, book: RuleBook) -> Explanation:
    from torchferry.explain.explaining import explain_logs, explain_stream, explain_text

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
    if args.quiet or not sys.stderr.isatty():
        return explain_logs(paths, book)
    with Bar(sys.stderr, "MiB", 1 << 20) as bar:
        return explain_logs(paths, book, bar.show)


def _is_message(text: str) -> bool:
    """A text with blanks that is no file."""
    if not any(letter.isspace() for letter in text.strip()):
        return False
    try:
        return not Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or with a zero byte
        return True


def _explain_code(args: argparse.Namespace, book: RuleBook) -> int:
    from torchferry.explain.explaining import explain_code
    from torchferry.explain.report.data import codes_to_json
    from torchferry.explain.report.page import page_of_code

    findings = explain_code(args.code, book)
    if not findings:
        raise InputError(f"{args.code}: no vendor's error code that is known; give the whole message instead")
    _print(args, page_of_code(findings), lambda: codes_to_json(findings))
    return 0


def _list_rules(args: argparse.Namespace, book: RuleBook) -> int:
    from torchferry.explain.report.data import rules_to_json
    from torchferry.explain.report.page import page_of_rules

    page = page_of_rules(book.patterns, args.lang or user_language())
    _print(args, page, lambda: rules_to_json(book.patterns))
    return 0


def _report(args: argparse.Namespace, explanation: Explanation) -> None:
    from torchferry.explain.report.data import to_json
    from torchferry.explain.report.page import OTHERS, page_of

    page = page_of(explanation, args.lang or user_language(), None if args.all else OTHERS)
    _print(args, page, lambda: to_json(explanation), sys.stderr if args.tee else None)


def _print(
    args: argparse.Namespace, page: Page, as_json: Callable[[], str], stream: TextIO | None = None
) -> None:
    from torchferry.cli.ending import reader_may_leave
    from torchferry.report.page import print_page, to_markdown

    language = args.lang or user_language()
    target = stream or sys.stdout
    with reader_may_leave():
        if args.format == "text":
            print_page(page, language, target)
            return
        text = as_json() if args.format == "json" else to_markdown(page, language)
        target.flush()
        target.buffer.write(text.encode("utf-8", "replace"))
        target.buffer.flush()
