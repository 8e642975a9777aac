"""What a comparison of records has found: text, JSON, CSV, a workbook, a page, and the vendors' own CSV. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchferry.accuracy.compare.model import RankComparison
from torchferry.report.formats import Reports

if TYPE_CHECKING:
    from torchferry.accuracy.compare.stages import RanksComparison

REPORTS: Reports[Sequence[RankComparison]] = Reports(
    {
        "text": f"{__name__}.text:to_text",
        "json": f"{__name__}.json:to_json",
        "csv": f"{__name__}.sheets:to_csv",
        "msaccucmp": f"{__name__}.msaccucmp:to_msaccucmp",
        "msprobe": f"{__name__}.msprobe:to_msprobe",
        "xlsx": f"{__name__}.sheets:to_xlsx",
    },
    body=f"{__name__}.html:to_body",
    verdict=f"{__name__}.sentences:grade",
)

# Of runs with another number of processes, or another layout.
RANKS_REPORTS: Reports[RanksComparison] = Reports(
    {"json": f"{__name__}.ranks:to_json"}, page=f"{__name__}.ranks:page_of"
)
