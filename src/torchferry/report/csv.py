"""CSV: one row a finding, for spreadsheets and scripts."""

from __future__ import annotations

from torchferry.outcome import Report
from torchferry.report.options import Options
from torchferry.report.safe import looks_like_formula, xml_text

COLUMNS = ("rule", "kind", "path", "line", "col", "before", "after", "message", "vendor", "url")


def render(report: Report, options: Options) -> bytes:
    """The findings as CSV in UTF-8, with the mark by which Excel knows it."""
    import csv
    import io

    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(COLUMNS)
    for finding in report.findings:
        texts = (finding.before, finding.after, options.say(finding.message), finding.vendor, finding.url)
        writer.writerow(
            [
                _cell(finding.rule),
                finding.kind.value,
                _cell(finding.path),
                finding.line,
                finding.col,
                *map(_cell, texts),
            ]
        )
    return output.getvalue().encode("utf-8-sig")


def _cell(text: str) -> str:
    """The text with an apostrophe before anything that a spreadsheet would run as a formula."""
    shown = xml_text(text)
    return "'" + shown if looks_like_formula(shown) else shown
