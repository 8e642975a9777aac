"""Read the host logs of a vendor's runtime: operators with their shapes, and compiles after the warm-up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from torchferry.cli import oplog_options
from torchferry.cli.progress import Bar
from torchferry.errors import OutputError
from torchferry.text import user_language

if TYPE_CHECKING:
    from torchferry.perf.oplog.model import OpLog

add_arguments = oplog_options.add_arguments

_SOME_UNREAD = 3


def run(args: argparse.Namespace) -> int:
    """Read, report; the answer is an exit code."""
    from torchferry.perf.oplog.reading import host_log_of, read_oplog
    from torchferry.perf.oplog.warmup import WarmUp

    vendor, forms = host_log_of(args.to, args.vendor_path)
    warm_up = WarmUp(args.after, args.warmup, args.shapes)
    if args.quiet or not sys.stderr.isatty():
        log = read_oplog(args.logs, vendor, forms, warm_up)
    else:
        with Bar(sys.stderr, "MiB", 1 << 20) as bar:
            log = read_oplog(args.logs, vendor, forms, warm_up, bar.show)
    _write_summary(args, log)
    _report(args, log)
    if log.unread:
        return _SOME_UNREAD
    return int(args.check and bool(log.recompiles))


def _write_summary(args: argparse.Namespace, log: OpLog) -> None:
    if args.summary is None:
        return
    from torchferry.files.aside import write_whole
    from torchferry.perf.oplog.report.files import to_summary

    try:
        write_whole(args.summary, to_summary(log))
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{args.summary}: can't be written ({reason}); choose another file") from error


def _report(args: argparse.Namespace, log: OpLog) -> None:
    from torchferry.cli.ending import reader_may_leave
    from torchferry.perf.oplog.report.files import to_csv, to_json
    from torchferry.perf.oplog.report.page import OPERATORS, page_of
    from torchferry.report.page import print_page, to_markdown

    language = args.lang or user_language()
    page = page_of(log, None if args.all else OPERATORS)
    with reader_may_leave():
        if args.format == "text":
            print_page(page, language)
            return
        renderers: dict[str, Callable[[], bytes]] = {
            "json": lambda: to_json(log).encode("ascii"),
            "csv": lambda: to_csv(log),
            "md": lambda: to_markdown(page, language).encode("utf-8", "replace"),
        }
        sys.stdout.flush()
        sys.stdout.buffer.write(renderers[args.format]())
        sys.stdout.buffer.flush()
