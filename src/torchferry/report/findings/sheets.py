"""Findings for spreadsheets: CSV with one row a finding, and a workbook of summary, findings and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchferry.finding import Finding
from torchferry.outcome import Report
from torchferry.report.csv import csv_lines
from torchferry.report.findings import words
from torchferry.report.findings.summary import WORST_FIRST, FindingsSummary, overview, summarize
from torchferry.report.findings.work_list import OPEN, work_list
from torchferry.report.formats import Options
from torchferry.report.xlsx import MAX_ROWS, Row, Sheet, workbook
from torchferry.text import Text

COLUMNS = (
    *("rule", "kind", "severity", "path", "line", "col", "before", "after", "title", "why", "do"),
    *("effort", "effort_each", "source", "vendor", "url"),
)


def to_csv(report: Report, options: Options) -> Iterator[str]:
    """One row a finding; the kinds are named as programs know them."""
    rows = (
        _cells(finding, finding.kind.value, finding.severity.value, options) for finding in report.findings
    )
    yield from csv_lines([COLUMNS, *rows])


def to_xlsx(report: Report, options: Options) -> bytes:
    """A workbook of three sheets."""
    summary = summarize(report)
    return workbook(
        [
            _summary_sheet(report, summary, options),
            _findings_sheet(report, options),
            _files_sheet(report, summary, options),
        ]
    )


def _cells(finding: Finding, kind: str, severity: str, options: Options) -> Row:
    said = {name: options.say(text) for name, text in vars(finding).items() if isinstance(text, Text)}
    values = {**vars(finding), **said, "kind": kind, "severity": severity}
    return [values[name] for name in COLUMNS]


def _summary_sheet(report: Report, summary: FindingsSummary, options: Options) -> Sheet:
    work = work_list(report)
    facts: list[tuple[Text, str | int]] = [
        (words.PROJECT, report.project),
        (words.TARGET, report.vendor),
        (words.COMMAND, report.command),
        (words.EFFORT, options.say(words.work_time(work.minutes)) if work.minutes else ""),
        *((words.SEVERITY_HEADING[severity], work.places[severity]) for severity in OPEN),
        (words.SITES, summary.sites),
        (words.AUTOMATIC, summary.automatic),
        (words.AUTOMATIC_SHARE, summary.percent),
        *overview(report, summary),
    ]
    left_out = len(report.findings) - MAX_ROWS
    if left_out > 0:
        facts.append((words.ROWS_LEFT_OUT.format(count=left_out), left_out))
    columns = [(words.SUMMARY, 34), (words.TOTAL, 40)]
    return _sheet(words.SUMMARY, columns, ([options.say(name), value] for name, value in facts), options)


def _findings_sheet(report: Report, options: Options) -> Sheet:
    columns = [
        (words.RULE, 10),
        (words.KIND_COLUMN, 14),
        (words.SEVERITY_COLUMN, 14),
        (words.FILE, 32),
        (words.LINE, 8),
        (words.COLUMN, 8),
        (words.BEFORE, 40),
        (words.AFTER, 40),
        (words.TITLE_COLUMN, 50),
        (words.WHY, 60),
        (words.DO, 60),
        (words.EFFORT_ONCE, 12),
        (words.EFFORT_EACH, 12),
        (words.SOURCE_LINE, 50),
        (words.VENDOR, 14),
        (words.LINK, 30),
    ]
    rows = (
        _cells(
            finding,
            options.say(words.KIND[finding.kind].name),
            options.say(words.SEVERITY[finding.severity].name),
            options,
        )
        for finding in report.findings
    )
    return _sheet(words.FINDINGS, columns, rows, options)


def _files_sheet(report: Report, summary: FindingsSummary, options: Options) -> Sheet:
    columns = [
        (words.FILE, 48),
        (words.STATUS_COLUMN, 14),
        *((words.KIND[kind].name, 14) for kind in WORST_FIRST),
        (words.REASON, 60),
    ]
    rows: Iterator[Row] = (
        [
            record.path,
            options.say(words.STATUS[record.status]),
            *(summary.by_file.get(record.path, {}).get(kind, 0) for kind in WORST_FIRST),
            record.reason,
        ]
        for record in report.files
    )
    return _sheet(words.FILES, columns, rows, options)


def _sheet(title: Text, columns: Sequence[tuple[Text, int]], rows: Iterable[Row], options: Options) -> Sheet:
    return Sheet(options.say(title), [(options.say(heading), width) for heading, width in columns], rows)
