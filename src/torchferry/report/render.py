"""One door to every format: render to bytes, write to a file at once, print to a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TextIO, cast

from torchferry.errors import OutputError, ReportError
from torchferry.files.aside import write_whole
from torchferry.outcome import Report
from torchferry.report.options import Options, RuleDocs
from torchferry.report.safe import write_to
from torchferry.text import Language, Text, user_language

Renderer = Callable[[Report, Options], bytes]


@dataclass(frozen=True)
class Format:
    """A report format: its module is loaded only when it is asked for."""

    name: str
    module: str
    suffix: str
    printable: bool = True  # can go to a terminal or a pipe

    def renderer(self) -> Renderer:
        return cast(Renderer, import_module(f"torchferry.report.{self.module}").render)


FORMATS = {
    entry.name: entry
    for entry in (
        Format("text", "text", ".txt"),
        Format("json", "findings_json", ".json"),
        Format("sarif", "sarif", ".sarif"),
        Format("github", "github", ".txt"),
        Format("md", "markdown", ".md"),
        Format("csv", "csv", ".csv"),
        Format("xlsx", "xlsx", ".xlsx", printable=False),
        Format("html", "html", ".html", printable=False),
    )
}


def render(report: Report, format_name: str, options: Options | None = None) -> bytes:
    """The report in a format, as the bytes of a file."""
    return find_format(format_name).renderer()(report, options or Options())


def write_report(
    report: Report,
    path: Path,
    format_name: str,
    language: Language | None = None,
    *,
    verbose: bool = False,
    rule_docs: RuleDocs | None = None,
) -> None:
    """Write the report to a file that appears whole or not at all."""
    data = render(report, format_name, _options(language, verbose, rule_docs))
    try:
        write_whole(path, data)
    except OSError as error:
        problem = Text(
            "{path}: can't be written ({reason}); choose another file",
            "{path}：无法写入（{reason}）；请选择其他文件",
        ).format(path=path, reason=error.strerror or error)
        raise OutputError(problem.in_language(user_language())) from error


def print_report(
    report: Report,
    format_name: str,
    language: Language | None = None,
    stream: TextIO | None = None,
    *,
    verbose: bool = False,
    rule_docs: RuleDocs | None = None,
) -> None:
    """Print the report; the text format has colours and the width of the terminal if the stream is one."""
    import sys

    target = stream or sys.stdout
    options = _options(language, verbose, rule_docs)
    if format_name == "text":
        _print_text(report, options, target)
        return
    data = render(report, format_name, options)
    binary = getattr(target, "buffer", None)
    if binary is None:
        target.write(data.decode("utf-8"))
    else:
        target.flush()
        binary.write(data)
    target.flush()


def format_of(path: Path | None) -> str:
    """The format that the suffix of a file names; text for any other."""
    suffix = path.suffix.lower() if path else ""
    return next((name for name, form in FORMATS.items() if form.suffix == suffix), "text")


def find_format(name: str) -> Format:
    """The format of this name, or an error that lists the names."""
    entry = FORMATS.get(name)
    if entry is None:
        problem = Text(
            "unknown report format '{name}'; choose one of {names}", "未知的报告格式 '{name}'；可选：{names}"
        ).format(name=name, names=", ".join(FORMATS))
        raise ReportError(problem.in_language(user_language()))
    return entry


def _options(language: Language | None, verbose: bool, rule_docs: RuleDocs | None) -> Options:
    return Options(language or user_language(), verbose, rule_docs or {})


def _print_text(report: Report, options: Options, target: TextIO) -> None:
    import shutil

    from torchferry.report.text import PLAIN_WIDTH, to_text

    terminal = target.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else PLAIN_WIDTH
    text = to_text(report, options, width=width, terminal=terminal)
    write_to(target, text)
