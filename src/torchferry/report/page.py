"""A report of verdicts, tables and notes, as a record: text, Markdown, CSV, a workbook and a page are made of it here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torchferry import units
from torchferry.report.formats import Options
from torchferry.report.records import GOOD, QUIET, Grade, tone_of
from torchferry.report.safe import one_line, shortened
from torchferry.text import Language, Text, named

if TYPE_CHECKING:
    from rich.console import RenderableType

    from torchferry.report.bodies import PageBody
    from torchferry.report.terminal import Words

NOTE = Text("note", "说明")
_VERDICT = Text("Verdict", "结论")
AND_MORE = Text("... and {count} more", "……另有 {count} 条")
_CALM = Text("{count} more need no attention", "另有 {count} 项无需处理")
_ALL_CALM = Text("{count}, none of which needs attention", "{count} 项，均无需处理")
SEARCH = Text("Search this table", "搜索此表")
_LONG = 100  # rows: beyond, a table on a page has a search
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


Field = Cell | Grade | Text | str | int | float | None
FIGURES: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: f"{int(value):,}" if value == int(value) else f"{value:,.2f}",
    "time": units.duration,
    "more": units.signed_duration,
    "share": units.percent,
    "ratio": lambda value: f"{value:.2f}",
}  # how a column of a kind shows its numbers; tables.js does the same


def lines(texts: Iterable[Text]) -> Text:
    """Each text on a line of its own, for a cell."""
    english, chinese = zip(*texts, strict=True)
    return Text("\n".join(map(one_line, english)), "\n".join(map(one_line, chinese)))


@dataclass(frozen=True)
class Column:
    """A column's head, and how it is set."""

    head: Text
    is_number: bool = False
    is_whole: bool = False  # its fields are never broken
    kind: str = ""  # "code", or one of FIGURES: its fields may be plain values, and are shown so
    width: int = 0  # of a sheet; 0: by what it holds

    @property
    def is_right(self) -> bool:
        """Whether the column holds numbers."""
        return self.is_number or self.kind in FIGURES

    @property
    def sheet_width(self) -> int:
        """How wide the column of a sheet is."""
        return self.width or (14 if self.is_right else 24 if self.is_whole else 60)

    def cell(self, field: Field) -> Cell:
        """What the column makes of a field; nothing of what is not known."""
        if isinstance(field, Cell):
            return field
        if isinstance(field, Grade):
            return Cell(field.name, field.style)
        if isinstance(field, Text):
            return Cell(field)
        if isinstance(field, str) or field is None:
            return Cell(field or "", is_code=self.kind == "code")
        return Cell(FIGURES[self.kind](field), value=field)


@dataclass(frozen=True)
class Table:
    """A titled table; fields are cells, or what their column makes a cell of."""

    title: Text
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Field, ...]]
    left_out: int = 0  # rows beyond these

    @property
    def count(self) -> int:
        """All rows, also those that are left out."""
        return len(self.rows) + self.left_out

    @property
    def cells(self) -> list[list[Cell]]:
        """The fields as they are shown."""
        return [
            [column.cell(field) for column, field in zip(self.columns, row, strict=True)] for row in self.rows
        ]

    def first(self, limit: int | None) -> Table:
        """The table with at most so many rows."""
        return replace(
            self, rows=self.rows[:limit], left_out=self.left_out + len(self.rows[limit or self.count :])
        )

    def without_empty_columns(self) -> Table:
        """The table without columns of which no row says anything."""
        kept = [at for at in range(len(self.columns)) if any(row[at] not in ("", None) for row in self.rows)]
        rows = [tuple(row[at] for at in kept) for row in self.rows]
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)


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


def to_text(page: Page, options: Options) -> str:
    """For a terminal, or without colours."""
    from torchferry.report.terminal import Screen, Words

    words = Words(options)
    screen = Screen(options)
    for verdict, style in page.verdicts:
        screen.line(words.plain(verdict, style))
    for table in page.filled:
        screen.part(*text_table(table, words))
    for note in page.notes:
        screen.line(words.note(NOTE, note))
    return screen.text()


def text_table(table: Table, words: Words, *, count: int | None = None) -> list[RenderableType]:
    """The table under its title, which may say how many things it is about."""
    return words.titled(table.title, drawn(table, words), count, left_out=table.left_out)


def drawn(table: Table, words: Words, longest: int = 0) -> RenderableType:
    """The table alone; fields that are longer than so many characters are cut."""
    from torchferry.report.terminal import empty_table

    drawn = empty_table()
    for place, column in enumerate(table.columns):
        drawn.add_column(
            words.plain(column.head),
            justify="right" if column.is_right else "left",
            no_wrap=column.is_whole,
            overflow="fold",
            min_width=_figures_width(table, place, words) if column.is_right else None,
        )
    for row in table.cells:
        texts = (cell.say(words.language) for cell in row)
        shown = (shortened(text, longest) if longest else text for text in texts)
        drawn.add_row(*(words.plain(text, cell.style) for text, cell in zip(shown, row, strict=True)))
    return drawn


def _figures_width(table: Table, place: int, words: Words) -> int:
    """How wide a column of figures must be: its head may be broken between words, its figures never."""
    from rich.cells import cell_len

    figures = (row[place].say(words.language) for row in table.cells)
    return max(map(cell_len, (*words.say(table.columns[place].head).split(), *figures)), default=1)


def to_markdown(page: Page, options: Options) -> str:
    """To read or to paste into an issue."""
    from torchferry.report.markdown import escape

    lines = [f"# {escape(options.say(page.title))}", ""]
    lines += [f"- {escape(options.say(verdict))}" for verdict, _ in page.verdicts]
    for table in page.filled:
        lines += ["", f"## {escape(options.say(table.title))}", "", *markdown_table(table, options)]
    if page.notes:
        lines.append("")
    lines += [f"- {escape(options.say(named(NOTE, note)))}" for note in page.notes]
    return "\n".join(lines) + "\n"


def markdown_table(found: Table, options: Options, longest: int = 0) -> Iterator[str]:
    """The lines of the table alone; fields that are longer than so many characters are cut."""
    from torchferry.report.markdown import code, escape, table

    def shown(cell: Cell) -> str:
        text = cell.say(options.language)
        lines = (shortened(text, longest) if longest else text).split("\n")
        return "<br>".join(map(code if cell.is_code else escape, lines))

    heads = [escape(options.say(column.head)) for column in found.columns]
    right = (at for at, column in enumerate(found.columns) if column.is_right)
    yield from table(heads, (list(map(shown, row)) for row in found.cells), right)
    if found.left_out:
        yield from ("", escape(options.say(AND_MORE.format(count=found.left_out))))


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
    said += [[options.say(named(NOTE, note))] for note in page.notes]
    sheets = [Sheet(options.say(_VERDICT), [(options.say(page.title), 120)], said)]
    for number, table in enumerate(page.filled, 1):
        title = options.say(table.title).translate(_NOT_IN_SHEET_NAMES)
        name = title if len(title) <= _SHEET_NAME else f"{title[: _SHEET_NAME - 4]} {number}"
        columns = [(options.say(column.head), column.sheet_width) for column in table.columns]
        sheets.append(Sheet(name, columns, _values(table, options)))
    return workbook(sheets)


def _values(table: Table, options: Options) -> list[list[str | int | float]]:
    return [
        [cell.say(options.language) if cell.value is None else cell.value for cell in row]
        for row in table.cells
    ]


def to_body(page: Page, options: Options) -> PageBody:
    """The page as HTML, in both languages."""
    from torchferry.report import html
    from torchferry.report.bodies import PageBody

    tone = tone_of(page.verdicts[0][1]).kind if page.verdicts else "info"
    head, *rest = [verdict for verdict, _ in page.verdicts] or [page.title]
    card = f'<div class="card {tone}">{html.prose(head, "h2")}{"".join(html.prose(text, "p") for text in rest)}</div>'
    notes = "".join(html.prose(note, 'p class="quiet"') for note in page.notes)
    sections = [
        html.section(
            table.title, _table_content(table, f"rows-{number}"), f"table-{number}", count=table.count
        )
        for number, table in enumerate(page.filled, 1)
    ]
    return PageBody(
        "tables",
        page.title.in_language(options.language),
        heading=html.both(page.title),
        overview=card,
        sections=(*sections, f'<section class="notes">{notes}</section>' if notes else ""),
        scripts=(html.ELEMENTS, html.CONTROLS, html.TABLES),
    )


def _table_content(table: Table, name: str) -> str:
    """What needs attention first; the rest can be opened. Of very many rows, a table with a search."""
    from torchferry.report import html

    more = html.quiet(AND_MORE.format(count=table.left_out)) if table.left_out else ""
    if len(table.rows) > _LONG:
        return html.long_table(name, table, SEARCH, -1) + more
    urgent = [row for row in table.rows if not _is_calm(row)]
    calm = [row for row in table.rows if _is_calm(row)]
    if not calm:
        return html_table(table) + more
    title = html.both((_CALM if urgent else _ALL_CALM).format(count=len(calm)))
    folded = (
        f'<details class="calm"><summary>{title}</summary>{html_table(replace(table, rows=calm))}</details>'
    )
    return (html_table(replace(table, rows=urgent)) if urgent else "") + folded + more


def _is_calm(row: tuple[Field, ...]) -> bool:
    """Whether a row has verdicts and none of them asks for anything."""
    grades = [field for field in row if isinstance(field, Grade)]
    return bool(grades) and all(grade.tone in (GOOD, QUIET) for grade in grades)


def html_table(table: Table, kind: str = "rules") -> str:
    """The HTML of a table."""
    from torchferry.report import html

    numbers = {at for at, column in enumerate(table.columns) if column.is_right}
    rows = (html.row(map(html_cell, row), numbers=numbers) for row in table.cells)
    return html.table([column.head for column in table.columns], rows, kind, numbers)


def html_cell(cell: Cell) -> str:
    """A field in both languages, in the tone of its style."""
    from torchferry.report import html

    if isinstance(cell.text, Text):
        pairs = map(Text, *(cell.say(language).split("\n") for language in ("en", "zh")))
        shown = "<br>".join(html.both(text, "code" if cell.is_code else "span") for text in pairs)
    else:
        lines = cell.text.split("\n") if cell.text else []
        shown = "<br>".join(map(html.code if cell.is_code else html.escaped, lines))
    return f'<span class="badge {tone_of(cell.style).kind}">{shown}</span>' if cell.style else shown
