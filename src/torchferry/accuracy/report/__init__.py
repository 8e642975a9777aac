"""What a comparison of records has found: text, JSON, CSV, a workbook, a page, and the vendors' own CSV. No torch."""

from collections.abc import Sequence

from torchferry.accuracy.compare.model import RankComparison
from torchferry.report.formats import Reports

REPORTS: Reports[Sequence[RankComparison]] = Reports(
    {
        "text": f"{__name__}.text:to_text",
        "json": f"{__name__}.json:to_json",
        "csv": f"{__name__}.sheets:to_csv",
        "msaccucmp": f"{__name__}.msaccucmp:to_msaccucmp",
        "msprobe": f"{__name__}.msprobe:to_msprobe",
        "xlsx": f"{__name__}.sheets:to_xlsx",
        "html": f"{__name__}.html:to_html",
    }
)
