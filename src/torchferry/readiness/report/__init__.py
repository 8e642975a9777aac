"""How ready devices are for a program: text, JSON, Markdown, CSV, a workbook, a page. Imports no torch."""

from collections.abc import Sequence

from torchferry.readiness.model import Readiness
from torchferry.report.formats import Reports

REPORTS: Reports[Sequence[Readiness]] = Reports(
    {
        "text": f"{__name__}.text:to_text",
        "json": f"{__name__}.json:to_json",
        "md": f"{__name__}.text:to_markdown",
        "csv": f"{__name__}.sheets:to_csv",
        "xlsx": f"{__name__}.sheets:to_xlsx",
    },
    body=f"{__name__}.html:to_body",
    verdict=f"{__name__}.words:grade",
)
