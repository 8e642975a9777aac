"""CSV for spreadsheets and scripts: UTF-8 with the mark by which Excel knows it, and no cell that is run as a formula."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchferry.report.safe import looks_like_formula, one_line, xml_text

Cell = str | int | float | None
BYTE_ORDER_MARK = "\ufeff"


def csv_lines(rows: Iterable[Sequence[Cell]], *, mark: bool = True) -> Iterator[str]:
    """A file, row by row; without the mark, a further part of one, or a file for programs alone."""
    import csv
    import io

    if mark:
        yield BYTE_ORDER_MARK
    for row in rows:
        output = io.StringIO()
        csv.writer(output).writerow(map(_cell, row))
        yield output.getvalue()


def flat(row: Iterable[Cell]) -> list[Cell]:
    """The row with every text on one line."""
    return [one_line(cell) if isinstance(cell, str) else cell for cell in row]


def _cell(value: Cell) -> Cell:
    """Text with an apostrophe before anything that a spreadsheet would run as a formula."""
    if not isinstance(value, str):
        return value
    text = xml_text(value)
    return "'" + text if looks_like_formula(text) else text
