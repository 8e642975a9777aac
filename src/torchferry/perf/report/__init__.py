"""Analyses of performance: text, JSON, Markdown, a page. Imports no torch."""

from torchferry.perf.report.sentences import RunsReport
from torchferry.report.formats import Reports

REPORTS: Reports[RunsReport] = Reports(
    {
        "text": f"{__name__}.text:to_text",
        "json": f"{__name__}.json:to_json",
        "md": f"{__name__}.text:to_markdown",
    },
    body=f"{__name__}.html:to_body",
    verdict=f"{__name__}.sentences:grade_of_all",
)
