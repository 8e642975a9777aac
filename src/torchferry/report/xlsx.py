"""Excel workbooks: sheets with a heading that stays in sight; equal content gives equal bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from torchferry.report.safe import looks_like_formula, xml_text

if TYPE_CHECKING:
    from openpyxl.cell import Cell

MAX_ROWS = 1_048_575  # what a sheet holds below its header
MAX_TEXT = 32_767  # what a cell holds
Value = str | int | float | None
Row = Sequence[Value]


class Sheet(NamedTuple):
    """One sheet; rows beyond those that a sheet holds are left out."""

    title: str
    columns: Sequence[tuple[str, int]]  # heading and width
    rows: Iterable[Row]


def workbook(sheets: Iterable[Sheet]) -> bytes:
    """A file, with headings, filters, and cells that are never formulas."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    for sheet in sheets:
        _fill(book.create_sheet(sheet.title), sheet)
    output = io.BytesIO()
    book.save(output)
    return without_times(output.getvalue())


def _fill(made: Any, sheet: Sheet) -> None:
    from openpyxl.utils import get_column_letter

    for position, (_, width) in enumerate(sheet.columns, 1):
        made.column_dimensions[get_column_letter(position)].width = width
    made.freeze_panes = "A2"
    styles = _Styles(made)
    made.append([styles.heading(heading) for heading, _ in sheet.columns])
    count = 1
    for row in islice(sheet.rows, MAX_ROWS):
        made.append([styles.cell(value) for value in row])
        count += 1
    made.auto_filter.ref = f"A1:{get_column_letter(len(sheet.columns))}{count}"


class _Styles:
    """Makes cells; the styles are built once because a sheet may have many."""

    def __init__(self, sheet: Any) -> None:
        from openpyxl.styles import Alignment, Font, PatternFill

        self.sheet = sheet
        self.bold = Font(bold=True)
        self.fill = PatternFill("solid", fgColor="E8EDF3")
        self.wrap = Alignment(wrap_text=True, vertical="top")

    def heading(self, text: str) -> Cell:
        cell = self.cell(text)
        cell.font, cell.fill = self.bold, self.fill
        return cell

    def cell(self, value: Value) -> Cell:
        from openpyxl.cell.cell import WriteOnlyCell

        if isinstance(value, (int, float)) and math.isfinite(value):
            cell: Cell = WriteOnlyCell(self.sheet, value=value)
        else:
            text = "" if value is None else xml_text(str(value))[:MAX_TEXT]
            cell = WriteOnlyCell(self.sheet, value=text)
            # Text stays text, also when the reader edits the cell: '@torch.no_grad()' is no formula.
            cell.data_type = "s"
            cell.quotePrefix = looks_like_formula(text)
        cell.alignment = self.wrap
        return cell


def without_times(workbook: bytes) -> bytes:
    """The same workbook with the earliest time that a zip archive knows, so that equal content is equal bytes."""
    import re
    import shutil
    import zipfile

    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(output, "w") as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o600 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            if name == "docProps/core.xml":
                data = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"1980-01-01T00:00:00Z", old.read(name))
                new.writestr(entry, data)
                continue
            entry.file_size = old.getinfo(name).file_size
            with old.open(name) as source, new.open(entry, "w") as target:  # a sheet may be large
                shutil.copyfileobj(source, target)
    return output.getvalue()
