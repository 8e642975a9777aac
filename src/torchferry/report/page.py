"""A report of verdicts, tables and notes, as a record: text, Markdown, CSV, a workbook and a page are made of it here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from torchferry.report.formats import Options, Reports
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from torchferry.report.terminal import Words

PLAIN_WIDTH = 100
NOTE = Text("note", "说明")
_VERDICT = Text("Verdict", "结论")
_MORE = Text("... and {count} more", "……另有 {count} 条")
_SHEET_NAME = 31  # characters that Excel takes
_NOT_IN_SHEET_NAMES = str.maketrans(dict.fromkeys("[]:*?/\\", " "))


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str | Text
    style: str = ""  # of a terminal; pages have the tone of it
    is_code: bool = False
    value: int | float | None = None  # what spreadsheets and scripts take, where the text is made for people

    def say(self, language: Language) -> str:
        """The text, in a language."""
        return self.text if isinstance(self.text, str) else self.text.in_language(language)


@dataclass(frozen=True)
class Column:
    """A column's head, and how it is set."""

    head: Text
    is_number: bool = False
    is_whole: bool = False  # its fields are never broken
    width: int = 0  # of a sheet; 0: by what it holds


@dataclass(frozen=True)
class Table:
    """A titled table."""

    title: Text
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0  # rows beyond these


@dataclass(frozen=True)
class Page:
    """Verdicts first, then tables, then notes; a table without rows is not shown."""

    title: Text
    verdicts: tuple[tuple[Text, str], ...]  # with their style
    tables: tuple[Table, ...] = ()
    notes: tuple[Text, ...] = ()

    @property
    def filled(self) -> list[Table]:
        """The tables that are shown."""
        return [table for table in self.tables if table.rows]


def itself(page: Page, options: Options) -> Page:
    """Of commands whose result is a page."""
    return page


PAGES: Reports[Page] = Reports(page=f"{__name__}:{itself.__name__}")


def print_page(page: Page, language: Language, stream: TextIO | None = None) -> None:
    """Print as text, with colours and the width of the terminal if the stream is one."""
    PAGES.show(page, "text", Options(language), stream)


def to_text(page: Page, options: Options) -> str:
    """For a terminal, or without colours."""
    from torchferry.report.terminal import Screen, Words

    words = Words(options)
    screen = Screen(options, PLAIN_WIDTH)
    for verdict, style in page.verdicts:
        screen.line(words.plain(verdict, style))
    for table in page.filled:
        screen.part(*words.titled(table.title, _drawn(table, words)))
        if table.left_out:
            screen.part(words.plain(_MORE.format(count=table.left_out), "dim"))
    for note in page.notes:
        screen.line(words.note(NOTE, note))
    return screen.text()


def _drawn(table: Table, words: Words) -> RenderableType:
    from torchferry.report.terminal import empty_table

    drawn = empty_table()
    for column in table.columns:
        drawn.add_column(
            words.plain(column.head),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number or column.is_whole,
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(words.plain(cell.text, cell.style) for cell in row))
    return drawn


def to_markdown(page: Page, options: Options) -> str:
    """To read or to paste into an issue."""
    return "\n".join(_markdown_lines(page, options)) + "\n"


def _markdown_lines(page: Page, options: Options) -> Iterator[str]:
    from torchferry.report.markdown import escape

    yield f"# {escape(options.say(page.title))}"
    yield ""
    for verdict, _ in page.verdicts:
        yield f"- {escape(options.say(verdict))}"
    for table in page.filled:
        yield from _markdown_table(table, options)
    if page.notes:
        yield ""
    for note in page.notes:
        yield f"- {escape(options.say(NOTE))}: {escape(options.say(note))}"


def _markdown_table(found: Table, options: Options) -> Iterator[str]:
    from torchferry.report.markdown import code, escape, table

    yield from ("", f"## {escape(options.say(found.title))}", "")
    rows = (
        [
            "<br>".join(map(code if cell.is_code else escape, cell.say(options.language).split("\n")))
            for cell in row
        ]
        for row in found.rows
    )
    heads = [escape(options.say(column.head)) for column in found.columns]
    yield from table(heads, rows, (at for at, column in enumerate(found.columns) if column.is_number))
    if found.left_out:
        yield from ("", escape(options.say(_MORE.format(count=found.left_out))))


def to_csv(page: Page, options: Options) -> Iterator[str]:
    """The tables: where there are several, each under its title and with an empty line before the next."""
    from torchferry.report.csv import csv_lines

    rows: list[Sequence[str | int | float]] = []
    for table in page.filled:
        if len(page.filled) > 1:
            rows += [[]] * bool(rows) + [[options.say(table.title)]]
        rows.append([options.say(column.head) for column in table.columns])
        rows += _values(table, options)
    yield from csv_lines(rows)


def to_xlsx(page: Page, options: Options) -> bytes:
    """A sheet of verdicts and notes, and one for each table."""
    from torchferry.report.xlsx import Sheet, workbook

    said = [[options.say(verdict)] for verdict, _ in page.verdicts]
    said += [[f"{options.say(NOTE)}: {options.say(note)}"] for note in page.notes]
    sheets = [Sheet(options.say(_VERDICT), [(options.say(page.title), 120)], said)]
    for number, table in enumerate(page.filled, 1):
        title = options.say(table.title).translate(_NOT_IN_SHEET_NAMES)
        name = title if len(title) <= _SHEET_NAME else f"{title[: _SHEET_NAME - 4]} {number}"
        columns = [(options.say(column.head), _width(column)) for column in table.columns]
        sheets.append(Sheet(name, columns, _values(table, options)))
    return workbook(sheets)


def _width(column: Column) -> int:
    return column.width or (14 if column.is_number else 24 if column.is_whole else 60)


def _values(table: Table, options: Options) -> list[list[str | int | float]]:
    return [
        [cell.say(options.language) if cell.value is None else cell.value for cell in row]
        for row in table.rows
    ]


def to_html(page: Page, options: Options) -> str:
    """One file in both languages."""
    from torchferry.report import html
    from torchferry.report.records import tone_of

    tone = tone_of(page.verdicts[0][1]).kind if page.verdicts else "info"
    head, *rest = [verdict for verdict, _ in page.verdicts] or [page.title]
    card = f'<div class="card {tone}">{html.both(head, "h2")}{"".join(html.both(text, "p") for text in rest)}</div>'
    notes = "".join(html.quiet(note) for note in page.notes)
    return html.whole_page(
        page.title.in_language(options.language),
        [*map(_html_table, page.filled), f"<section>{notes}</section>" if notes else ""],
        language=options.language,
        heading=html.both(page.title),
        overview=card,
    )


def _html_table(found: Table) -> str:
    from torchferry.report import html

    rows = (html.row(map(_html_cell, row)) for row in found.rows)
    more = html.quiet(_MORE.format(count=found.left_out)) if found.left_out else ""
    shown = html.table([column.head for column in found.columns], rows) + more
    return html.section(found.title, shown, count=len(found.rows) + found.left_out)


def _html_cell(cell: Cell) -> str:
    from torchferry.report import html
    from torchferry.report.records import tone_of

    english, chinese = (cell.say(language).split("\n") for language in ("en", "zh"))
    texts = map(Text, english, chinese)
    shown = "<br>".join(html.both(text, "code" if cell.is_code else "span") for text in texts)
    return f'<span class="badge {tone_of(cell.style).kind}">{shown}</span>' if cell.style else shown
