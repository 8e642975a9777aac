"""A proof: text for the terminal, JSON, a page. Imports no torch."""

from torchferry.proof.model import Proof
from torchferry.report.formats import Reports

REPORTS: Reports[Proof] = Reports(
    {
        "text": f"{__name__}.text:to_text",
        "json": f"{__name__}.json:to_json",
    },
    body=f"{__name__}.html:to_body",
    verdict=f"{__name__}.sentences:grade",
)
