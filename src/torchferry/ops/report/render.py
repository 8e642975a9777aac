"""One door to every format of a readiness report: render to bytes, choose by a file's name, print."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from torchferry.errors import OutputError, ReportError
from torchferry.ops.readiness import Readiness
from torchferry.text import Language

FORMATS = {".txt": "text", ".json": "json", ".xlsx": "xlsx", ".html": "html", ".md": "md", ".csv": "csv"}


def format_of(path: Path) -> str:
    """The format that a file's name asks for."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ReportError(f"{path}: unknown kind of report; end the name in one of {', '.join(FORMATS)}")
    return FORMATS[suffix]


def render(
    format_name: str,
    readinesses: Sequence[Readiness],
    language: Language = "en",
    *,
    folder: Path | None = None,
    limit: int | None = None,
) -> bytes:
    """The report as the bytes of a file.

    `folder` is where the program ran: the page shows lines of code from below it. `limit` is the most rows of a table of
    the text format; by default there is none.
    """
    if format_name == "text":
        from torchferry.ops.report.text import to_text

        return to_text(readinesses, language, limit=limit).encode("utf-8", "replace")
    if format_name == "json":
        from torchferry.ops.report.json import to_json

        return to_json(readinesses).encode("ascii")
    if format_name == "xlsx":
        from torchferry.ops.report.spreadsheets import to_xlsx

        return to_xlsx(readinesses, language)
    if format_name == "html":
        from torchferry.ops.report.html import to_html

        return to_html(readinesses, language, folder).encode("utf-8")
    if format_name == "md":
        from torchferry.ops.report.markdown import to_markdown

        return to_markdown(readinesses, language).encode("utf-8")
    if format_name == "csv":
        from torchferry.ops.report.spreadsheets import to_csv

        return to_csv(readinesses, language)
    raise ReportError(f"unknown report format '{format_name}'; choose one of {', '.join(FORMATS.values())}")


def write_report(
    path: Path, readinesses: Sequence[Readiness], language: Language, *, folder: Path | None = None
) -> None:
    """Write the report that the file's name asks for; the file appears whole or not at all."""
    from torchferry.files.aside import write_whole

    data = render(format_of(path), readinesses, language, folder=folder)
    try:
        write_whole(path, data)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path}: can't be written ({reason}); choose another file") from error


def print_text(
    readinesses: Sequence[Readiness],
    language: Language,
    stream: TextIO,
    *,
    limit: int | None,
    everything: bool = False,
) -> None:
    """Print the text format, with colours and the width of the terminal if the stream is one."""
    from torchferry.ops.report.text import PLAIN_WIDTH, to_text

    terminal = stream.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else PLAIN_WIDTH
    text = to_text(readinesses, language, width=width, terminal=terminal, limit=limit, everything=everything)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()
