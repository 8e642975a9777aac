"""One door to every format of an analysis: render, write a file that appears whole or not at all, print."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TextIO

from torchferry.errors import OutputError, ReportError
from torchferry.files.aside import write_whole
from torchferry.perf.report.sentences import Report
from torchferry.text import Language

SUFFIXES = {".txt": "text", ".json": "json", ".md": "md", ".html": "html"}
FORMATS = ("text", "json", "md", "html")


def format_of(path: Path) -> str:
    """The format that a file's name asks for."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ReportError(f"{path}: unknown kind of report; end the name in one of {', '.join(SUFFIXES)}")
    return SUFFIXES[suffix]


def rendered(format_name: str, report: Report, language: Language = "en") -> bytes:
    """The report as the bytes of a file."""
    if format_name == "text":
        from torchferry.perf.report.text import to_text

        return to_text(report, language).encode("utf-8", "replace")
    if format_name == "json":
        from torchferry.perf.report.json import to_json

        return to_json(report).encode("ascii")
    if format_name == "md":
        from torchferry.perf.report.markdown import to_markdown

        return to_markdown(report, language).encode("utf-8", "replace")
    if format_name == "html":
        from torchferry.perf.report.html import to_html

        return to_html(report, language).encode("utf-8")
    raise ReportError(f"unknown report format '{format_name}'; choose one of {', '.join(FORMATS)}")


def write_report(path: Path, report: Report, language: Language) -> None:
    """Write the report that the file's name asks for."""
    data = rendered(format_of(path), report, language)
    try:
        write_whole(path, data)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path}: can't be written ({reason}); choose another file") from error


def print_text(report: Report, language: Language, stream: TextIO) -> None:
    """Print the text format, with colours and the width of the terminal if the stream is one."""
    from torchferry.perf.report.text import LEAST_WIDTH, PLAIN_WIDTH, to_text

    terminal = stream.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else PLAIN_WIDTH
    width = max(width, LEAST_WIDTH)
    text = to_text(report, language, width=width, terminal=terminal)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()
