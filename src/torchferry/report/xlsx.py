"""An Excel workbook with three sheets: summary, findings, files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torchferry.finding import Kind
from torchferry.outcome import Report
from torchferry.report import words
from torchferry.report.options import Options
from torchferry.report.safe import looks_like_formula, xml_text
from torchferry.report.summary import WORST_FIRST, Summary, summarize
from torchferry.text import Text

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.cell import Cell

MAX_ROWS = 1_048_575  # what a sheet holds below its header
MAX_TEXT = 32_767  # what a cell holds
Row = list["str | int | float"]
Columns = Sequence[tuple[Text, int]]  # heading and width


def render(report: Report, options: Options) -> bytes:
    """The report as a workbook."""
    import io

    from openpyxl import Workbook

    summary = summarize(report)
    book = Workbook(write_only=True)
    _summary_sheet(book, report, summary, options)
    _findings_sheet(book, report, options)
    _files_sheet(book, report, summary, options)
    output = io.BytesIO()
    book.save(output)
    return output.getvalue()


def _summary_sheet(book: Workbook, report: Report, summary: Summary, options: Options) -> None:
    facts: list[tuple[Text, str | int]] = [
        (words.PROJECT, report.project),
        (words.TARGET, report.vendor),
        (words.COMMAND, report.command),
        (words.SITES, summary.sites),
        (words.AUTOMATIC, summary.automatic),
        (words.AUTOMATIC_SHARE, summary.percent()),
        (words.TO_DECIDE, summary.todo),
        (words.UNSUPPORTED, summary.unsupported),
        (words.UNKNOWN, summary.unknown),
        (words.RISKS, summary.by_kind[Kind.RISK]),
        (words.LEFT, summary.by_kind[Kind.INFO]),
        (words.FILES_SEEN, summary.files_seen),
        (
            words.FILES_CHANGED if report.command == "convert" else words.FILES_TO_CHANGE,
            summary.files_changed,
        ),
        (words.FILES_FAILED, summary.files_failed),
    ]
    left_out = len(report.findings) - MAX_ROWS
    if left_out > 0:
        facts.append((words.ROWS_LEFT_OUT.format(count=left_out), left_out))
    columns = [(words.SUMMARY, 34), (words.TOTAL, 40)]
    add_sheet(book, words.SUMMARY, columns, [[options.say(name), value] for name, value in facts], options)


def _findings_sheet(book: Workbook, report: Report, options: Options) -> None:
    columns = [
        (words.RULE, 10),
        (words.KIND_COLUMN, 14),
        (words.FILE, 32),
        (words.LINE, 8),
        (words.COLUMN, 8),
        (words.BEFORE, 40),
        (words.AFTER, 40),
        (words.MESSAGE, 60),
        (words.VENDOR, 14),
        (words.LINK, 30),
    ]
    rows: Iterator[Row] = (
        [
            finding.rule,
            options.say(words.KIND[finding.kind]),
            finding.path,
            finding.line,
            finding.col,
            finding.before,
            finding.after,
            options.say(finding.message),
            finding.vendor,
            finding.url,
        ]
        for finding in report.findings[:MAX_ROWS]
    )
    add_sheet(book, words.FINDINGS, columns, rows, options)


def _files_sheet(book: Workbook, report: Report, summary: Summary, options: Options) -> None:
    columns = [
        (words.FILE, 48),
        (words.STATUS_COLUMN, 14),
        *((words.KIND[kind], 14) for kind in WORST_FIRST),
        (words.REASON, 60),
    ]
    counts = {file.path: file.counts for file in summary.by_file}
    rows: Iterator[Row] = (
        [
            record.path,
            options.say(words.STATUS[record.status]),
            *(counts.get(record.path, {}).get(kind, 0) for kind in WORST_FIRST),
            record.reason,
        ]
        for record in report.files[:MAX_ROWS]
    )
    add_sheet(book, words.FILES, columns, rows, options)


def add_sheet(book: Workbook, title: Text, columns: Columns, rows: Iterable[Row], options: Options) -> None:
    """Add a sheet with a heading that stays in sight, a filter, and cells that are never formulas."""
    from openpyxl.utils import get_column_letter

    sheet: Any = book.create_sheet(options.say(title))
    for position, (_, width) in enumerate(columns, 1):
        sheet.column_dimensions[get_column_letter(position)].width = width
    sheet.freeze_panes = "A2"
    styles = _Styles(sheet)
    sheet.append([styles.heading(options.say(heading)) for heading, _ in columns])
    count = 1
    for row in rows:
        sheet.append([styles.cell(value) for value in row])
        count += 1
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(columns))}{count}"


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

    def cell(self, value: str | int | float) -> Cell:
        from openpyxl.cell.cell import WriteOnlyCell

        if isinstance(value, (int, float)):
            cell: Cell = WriteOnlyCell(self.sheet, value=value)
        else:
            text = xml_text(value)[:MAX_TEXT]
            cell = WriteOnlyCell(self.sheet, value=text)
            # Text stays text, also when the reader edits the cell: '@torch.no_grad()' is no formula.
            cell.data_type = "s"
            cell.quotePrefix = looks_like_formula(text)
        cell.alignment = self.wrap
        return cell
