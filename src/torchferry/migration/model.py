"""What a migration folder holds: one record for each command that has added its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchferry.report.provenance import Provenance
from torchferry.report.records import TONES, Tone
from torchferry.text import Text

DOCUMENT, BODY = "report.json", "page.json"  # the report as JSON, and what its page shows


@dataclass(frozen=True)
class KeptRun:
    """One run of a command: how it was called, how it ended, what it came to."""

    command: str  # scan, prove ...
    made: Provenance  # command line, versions, commit and date
    started: str  # to the second, UTC
    seconds: float
    exit_code: int
    verdict: Text  # in one line
    tone: str  # of the verdict: the name that pages have for it
    folder: str = "."  # where the command ran, from the project's folder
    plugins: Mapping[str, str] = field(default_factory=dict)  # vendors' plugins that are installed: versions
    files: tuple[str, ...] = ()  # DOCUMENT and BODY, as far as the command has a report
    by_hand: str = ""  # what `ferry migrate` would have had a user type
    number: int = 0  # in the history, from 1 on

    @property
    def light(self) -> Tone:
        """The tone of the verdict."""
        return next(tone for tone in TONES if tone.kind == self.tone)

    @property
    def has_page(self) -> bool:
        """Whether the report can be shown on a page."""
        return BODY in self.files

    @property
    def line(self) -> str:
        """The command as it can be typed again in the project's folder."""
        return self.by_hand or self.made.command
