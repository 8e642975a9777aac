"""One door to every format of a comparison: render, write a file that appears whole or not at all, print."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from torchferry.accuracy.compare.model import Comparison
from torchferry.errors import OutputError, ReportError
from torchferry.files.aside import whole_file
from torchferry.text import Language

SUFFIXES = {".txt": "text", ".json": "json", ".csv": "csv", ".xlsx": "xlsx", ".html": "html"}
MSACCUCMP = "msaccucmp"
FORMATS = ("text", "json", "csv", MSACCUCMP, "xlsx", "html")
NOT_PRINTABLE = ("xlsx",)


def format_of(path: Path) -> str:
    """The format that a file's name asks for."""
    name = path.name.lower()
    if name.endswith((".msaccucmp.csv", "_msaccucmp.csv")):
        return MSACCUCMP
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join([*SUFFIXES, ".msaccucmp.csv"])
        raise ReportError(f"{path}: unknown kind of report; end the name in one of {known}")
    return SUFFIXES[suffix]


def pieces(
    format_name: str,
    comparisons: Sequence[Comparison],
    language: Language = "en",
    *,
    everything: bool = False,
) -> Iterator[bytes]:
    """The report as the bytes of a file, piece by piece."""
    if format_name == "text":
        from torchferry.accuracy.report.text import LIMIT, to_text

        limit = None if everything else LIMIT
        text = to_text(comparisons, language, limit=limit, everything=everything)
        yield text.encode("utf-8", "replace")
    elif format_name == "json":
        from torchferry.accuracy.report.json import to_json

        yield from (piece.encode("ascii") for piece in to_json(comparisons))
    elif format_name == "csv":
        from torchferry.accuracy.report.csv import to_csv

        yield from (piece.encode("utf-8") for piece in to_csv(comparisons))
    elif format_name == MSACCUCMP:
        from torchferry.accuracy.report.msaccucmp import to_msaccucmp

        yield from (piece.encode("utf-8") for piece in to_msaccucmp(comparisons))
    elif format_name == "xlsx":
        from torchferry.accuracy.report.xlsx import to_xlsx

        yield to_xlsx(comparisons, language)
    elif format_name == "html":
        from torchferry.accuracy.report.html import to_html

        yield to_html(comparisons, language).encode("utf-8")
    else:
        raise ReportError(f"unknown report format '{format_name}'; choose one of {', '.join(FORMATS)}")


def write_report(
    path: Path, comparisons: Sequence[Comparison], language: Language, *, everything: bool = False
) -> None:
    """Write the report that the file's name asks for."""
    try:
        with whole_file(path) as stream:
            stream.writelines(pieces(format_of(path), comparisons, language, everything=everything))
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path}: can't be written ({reason}); choose another file") from error


def print_text(
    comparisons: Sequence[Comparison], language: Language, stream: TextIO, *, everything: bool = False
) -> None:
    """Print the text format, with colours and the width of the terminal if the stream is one."""
    from torchferry.accuracy.report.text import LIMIT, PLAIN_WIDTH, to_text

    terminal = stream.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else PLAIN_WIDTH
    limit = None if everything else LIMIT
    text = to_text(comparisons, language, width=width, terminal=terminal, limit=limit, everything=everything)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()
