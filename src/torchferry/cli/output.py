"""What a command says: its report on stdout, remarks and progress on stderr. `-q` silences the remarks."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from torchferry.cli.options import language_of
from torchferry.errors import OutputError, RunError
from torchferry.report.safe import one_line
from torchferry.report.streams import reader_may_leave, write_bytes
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.report.formats import Content, Options, Reports


def say(args: argparse.Namespace, command: str, line: Text) -> None:
    """A remark of a command, unless it is to be quiet."""
    if not args.quiet:
        print(f"{command}: {line.in_language(language_of(args))}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    """A remark on stderr, on one line."""
    print(f"note: {one_line(text)}", file=sys.stderr)


def write(data: bytes | str) -> None:
    """A text that is no report on stdout, whatever its encoding can't say; a reader may stop reading."""
    with reader_may_leave():
        write_bytes(sys.stdout, [data.encode("utf-8", "replace") if isinstance(data, str) else data])


def deliver(reports: Reports[Content], content: Content, args: argparse.Namespace, wanted: Options) -> None:
    """A report into each file that -o names, and on stdout in the --format that is asked for."""
    for path in args.output:
        reports.write(content, path, wanted)
    reports.show(content, args.format, wanted)


def check_reports(reports: Reports[Content], outputs: Iterable[Path]) -> None:
    """Say before the work, not after it, that a file has no format or can't be written."""
    for path in outputs:
        reports.format_of(path)
        check_writable(path)


def check_writable(*paths: Path) -> None:
    """Say before the work, not after it, that a file can't be written."""
    for path in paths:
        if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
            raise OutputError(f"{path}: can't be written there; name a file in a folder that exists")


def need(what: str, *packages: str) -> None:
    """Say what is not installed before it is missed: `what` tells what it is needed for."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise RunError(f"{what} {' and '.join(missing)}, not installed here; pip install {' '.join(missing)}")


def interrupted(signal: int, kept: str) -> NoReturn:
    """End as a program that a signal has ended; `kept` says what there is nevertheless."""
    from torchferry.launch.supervise import EndRequest

    told = EndRequest(signal)
    told.args = (kept,) if kept else ()
    raise told
