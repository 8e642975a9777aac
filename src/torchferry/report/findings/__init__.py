"""What `scan` and `convert` have found, in every format: for people, for code review, for editors, for programs."""

from torchferry.outcome import Report
from torchferry.report.formats import Reports

REPORTS: Reports[Report] = Reports(
    {
        "text": f"{__name__}.text:render",
        "json": f"{__name__}.json:render",
        "sarif": f"{__name__}.sarif:render",
        "github": f"{__name__}.github:render",
        "md": f"{__name__}.markdown:render",
        "csv": f"{__name__}.sheets:to_csv",
        "xlsx": f"{__name__}.sheets:to_xlsx",
    },
    body=f"{__name__}.html:page_of",
    verdict=f"{__name__}.work_list:grade",
    other="text",
    only_files=("xlsx", "html"),
)
