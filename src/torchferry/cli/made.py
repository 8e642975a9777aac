"""What commands that run something say as JSON (`--json`): how it ended, and the files that it has made."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from torchferry.cli import options
from torchferry.cli.grammar import Group
from torchferry.cli.output import show
from torchferry.report.formats import Reports
from torchferry.text import Text

JSON = "json"
_FORMAT = Text(
    "Format of the summary (default: text, on standard error); with json it goes to standard output, and what the "
    "program prints to standard error",
    "摘要的格式（默认：text，写到标准错误）；使用 json 时摘要写到标准输出，程序的输出转到标准错误",
)


@dataclass(frozen=True)
class MadeFile:
    """A file, or a folder, that a command has made."""

    path: str
    rank: int = 0
    calls: int | None = None
    steps: int | None = None
    is_complete: bool = True


@dataclass(frozen=True)
class Made:
    """How a command ended."""

    command: str
    vendor: str  # whose device it was; "": of no vendor
    device: str  # real, emulated, simulated, reference, as is
    exit_code: int  # of the command
    verdict: str  # of what was tested; "": nothing was
    said: str  # the reason for the verdict
    files: tuple[MadeFile, ...]


REPORTS: Reports[Made] = Reports({"json": "torchferry.cli.made:to_json"})


def to_json(made: Made, _options: object) -> str:
    """The whole record."""
    from torchferry.report.json import document

    return document("torchferry-made", made)


def add_summary_format(group: Group) -> None:
    """Add --format and --json to a command that says on stderr what it has done."""
    options.add_format(group, options.SUMMARY_FORMATS, _FORMAT)


def tell_made(
    args: argparse.Namespace,
    command: str,
    exit_code: int,
    files: Sequence[MadeFile] = (),
    *,
    vendor: str = "",
    device: str = "",
    verdict: str = "",
    said: str = "",
) -> int:
    """Print the record if --json asks for it; the answer is the exit code."""
    if args.format == JSON:
        show(REPORTS, Made(command, vendor, device, exit_code, verdict, said, tuple(files)), args)
    return exit_code


@contextmanager
def stdout_kept(args: argparse.Namespace) -> Iterator[None]:
    """With --json standard output is the record's: what a program prints meanwhile goes to standard error."""
    if args.format != JSON:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
