"""A short report of verdicts and tables, as text for a terminal and as Markdown: for commands that answer at once."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from torchferry.report.safe import one_line, write_to
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as Drawn
    from rich.text import Text as Styled

PLAIN_WIDTH = 100


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    style: str = ""  # of a terminal
    is_code: bool = False


@dataclass(frozen=True)
class Column:
    """A column's head, and how it is set."""

    head: Text
    is_number: bool = False
    is_whole: bool = False  # its fields are never broken


@dataclass(frozen=True)
class Table:
    """A titled table."""

    title: Text
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0  # rows beyond these


@dataclass(frozen=True)
class Page:
    """Verdicts first, then tables, then notes."""

    title: Text
    verdicts: tuple[tuple[Text, str], ...]  # with their style
    tables: tuple[Table, ...] = ()
    notes: tuple[Text, ...] = ()


_MORE = Text("... and {count} more", "……另有 {count} 条")
NOTE = Text("note", "说明")


def print_page(page: Page, language: Language, stream: TextIO | None = None) -> None:
    """Print as text, with colours and the width of the terminal if the stream is one."""
    target = stream or sys.stdout
    terminal = target.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else PLAIN_WIDTH
    text = to_text(page, language, width=width, terminal=terminal)
    write_to(target, text)


def to_text(page: Page, language: Language, *, width: int = PLAIN_WIDTH, terminal: bool = False) -> str:
    """The page for a terminal of this width, or without colours."""
    import io

    from rich.console import Console

    output = io.StringIO()
    console = Console(
        file=output, width=width, force_terminal=terminal, highlight=False, legacy_windows=False, emoji=False
    )
    for verdict, style in page.verdicts:
        console.print(_plain(verdict.in_language(language), style), soft_wrap=not terminal)
    for table in page.tables:
        _print_table(console, table, language)
    for note in page.notes:
        line = f"{NOTE.in_language(language)}: {note.in_language(language)}"
        console.print(_plain(line, "dim"), soft_wrap=not terminal)
    return "\n".join(line.rstrip() for line in output.getvalue().split("\n"))


def _print_table(console: Console, table: Table, language: Language) -> None:
    if not table.rows:
        return
    console.print()
    console.print(_plain(table.title.in_language(language), "bold"))
    console.print(_drawn(table, language))
    if table.left_out:
        console.print(_plain(_MORE.format(count=table.left_out).in_language(language), "dim"))


def _drawn(table: Table, language: Language) -> Drawn:
    from rich import box
    from rich.table import Table as Drawn

    drawn = Drawn(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        drawn.add_column(
            _plain(column.head.in_language(language)),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number or column.is_whole,
            overflow="fold",
        )
    for row in table.rows:
        cells: list[RenderableType] = [_plain(cell.text, cell.style) for cell in row]
        drawn.add_row(*cells)
    return drawn


def _plain(text: str, style: str = "") -> Styled:
    """Text that rich shows as it is: brackets are no markup."""
    from rich.text import Text as Styled

    return Styled("\n".join(map(one_line, text.split("\n"))), style)


def to_markdown(page: Page, language: Language) -> str:
    """The page to paste into an issue."""
    return "\n".join(_markdown_lines(page, language)) + "\n"


def _markdown_lines(page: Page, language: Language) -> Iterator[str]:
    from torchferry.report.markdown import escape

    yield f"# {escape(page.title.in_language(language))}"
    yield ""
    for verdict, _ in page.verdicts:
        yield f"- {escape(verdict.in_language(language))}"
    for table in page.tables:
        if table.rows:
            yield from _markdown_table(table, language)
    if page.notes:
        yield ""
    for note in page.notes:
        yield f"- {escape(NOTE.in_language(language))}: {escape(note.in_language(language))}"


def _markdown_table(table: Table, language: Language) -> Iterator[str]:
    from torchferry.report.markdown import code, escape

    yield from ("", f"## {escape(table.title.in_language(language))}", "")
    yield "| " + " | ".join(escape(column.head.in_language(language)) for column in table.columns) + " |"
    yield "|" + "|".join("---:" if column.is_number else "---" for column in table.columns) + "|"
    for row in table.rows:
        cells = ["<br>".join(map(code if cell.is_code else escape, cell.text.split("\n"))) for cell in row]
        yield "| " + " | ".join(cells) + " |"
    if table.left_out:
        yield from ("", escape(_MORE.format(count=table.left_out).in_language(language)))
