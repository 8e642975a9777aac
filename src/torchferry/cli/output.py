"""What a command says: its report on stdout, remarks and progress on stderr. `-q` silences the remarks."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from torchferry.cli.options import language_of
from torchferry.errors import OutputError, RunError
from torchferry.report.progress import print_line
from torchferry.report.safe import one_line
from torchferry.report.streams import reader_may_leave, write_bytes
from torchferry.text import Text, user_language

if TYPE_CHECKING:
    from torchferry.report.formats import Content, Options, Reports


def say(args: argparse.Namespace, command: str, *lines: Text) -> None:
    """Remarks of a command, unless it is to be quiet."""
    for line in () if args.quiet else lines:
        print_line(f"{command}: {line.in_language(language_of(args))}")


_NOTE = Text("note: {said}", "说明：{said}")


_CODE_MAY_RUN = Text(
    "--allow-pickle: code that the checkpoint names may run", "--allow-pickle：检查点引用的代码可能会被执行"
)


def warn_of_pickle() -> None:
    """A remark that nothing silences: the user has allowed a file to run code."""
    print_line(f"ferry: {_CODE_MAY_RUN.in_language(user_language())}")


def note(said: Text) -> None:
    """A remark on stderr, on one line."""
    print_line(one_line(_NOTE.format(said=said).in_language(user_language())))


def write(data: bytes | str) -> None:
    """A text that is no report on stdout, whatever its encoding can't say; a reader may stop reading."""
    with reader_may_leave():
        write_bytes(sys.stdout, [data.encode("utf-8", "replace") if isinstance(data, str) else data])


def report_options(args: argparse.Namespace, **more: Any) -> Options:
    """What the command line says about reports: --lang, --color, --verbose, and what the command adds."""
    from torchferry.report.formats import Options

    chosen = {
        "language": args.lang or user_language(),
        "everything": getattr(args, "verbose", False),
        "color": getattr(args, "color", "auto"),
    }
    return Options(**{**chosen, **more})


def show(
    reports: Reports[Content],
    content: Content,
    args: argparse.Namespace,
    stream: TextIO | None = None,
    **more: Any,
) -> None:
    """Print a report in the --format (or --json) that is asked for."""
    wanted = report_options(args, **more)
    note_report(reports, content, wanted)
    reports.show(content, getattr(args, "format", "text"), wanted, stream)


def note_report(reports: Reports[Content], content: Content, wanted: Options) -> None:
    """Have the report added to the migration folder, if there is one."""
    from torchferry.migration.adding import note_report as note

    note(reports, content, wanted)


def deliver(
    reports: Reports[Content],
    content: Content,
    args: argparse.Namespace,
    stream: TextIO | None = None,
    **more: Any,
) -> None:
    """Write a report into each file that -o names, and print it."""
    for path in args.output:
        reports.write(content, path, report_options(args, **more))
    show(reports, content, args, stream, **more)


FOUND, PARTIAL = 1, 3


def exit_code(*, is_found: bool, is_partial: bool) -> int:
    """1 where a check has found something, else 3 where not all could be looked at: what is known comes first."""
    return FOUND if is_found else PARTIAL if is_partial else 0


def check_reports(reports: Reports[Content], outputs: Iterable[Path]) -> None:
    """Say before the work, not after it, that a file has no format or can't be written."""
    for path in outputs:
        reports.format_of(path)
        check_writable(path)


def check_writable(*paths: Path) -> None:
    """Say before the work, not after it, that a file can't be written."""
    for path in paths:
        if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
            raise OutputError(
                Text(
                    f"{path}: can't be written there; name a file in a folder that exists",
                    f"{path}：无法在此写入；请指定已存在文件夹中的文件",
                )
            )


RECORD_EXTRA = "'torchferry[record]'"  # what reads recordings, as a shell takes it
_NEEDED = Text(
    "not installed: {missing}; pip install {extra}", "未安装：{missing}；请运行 pip install {extra}"
)


def need(extra: str, *packages: str) -> None:
    """Say which packages are not installed before they are missed; `extra` is what brings them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise RunError(_NEEDED.format(missing=", ".join(missing), extra=extra))
