"""What goes into an archive for a vendor, and what was taken out of it. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.readiness.cases.model import CaseOutcome
from torchferry.report.anonymous import Replaced
from torchferry.text import Language, Text
from torchferry.vendors.model import Vendor

RECORD, STATISTICS, LOG, README, MANIFEST, VERSIONS, MACHINE = (
    "record.h5", "statistics.json", "log_excerpt.txt", "README.md", "manifest.json", "versions.json", "machine.md",
)  # fmt: skip
MOST = 25 << 20  # bytes: what the issue trackers of GitHub and Gitee take


@dataclass(frozen=True)
class BundleRequest:
    """What an archive is to be made of."""

    sources: tuple[Path, ...]  # at most one case or record, and logs
    vendor: Vendor
    call: int | None = None  # its number in the record
    language: Language = "en"
    most: int = MOST
    hidden: tuple[str, ...] = ()  # words that the user wants to be taken out
    vendor_path: tuple[Path, ...] = ()
    is_run: bool = True
    emulate: bool = False
    timeout: float = 120.0
    is_quiet: bool = False


@dataclass(frozen=True)
class BundleSources:
    """The same, by what each is."""

    case: Path | None = None
    record: Path | None = None
    logs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class IssueCase:
    """What is known of the operator that an issue is about."""

    operator: str
    file: str  # test_exp.py
    command: str  # that runs it
    called: str = ""  # with what, in one line
    outcome: CaseOutcome | None = None  # of its run here; None: it was not run
    recorded: tuple[tuple[Text, Text], ...] = ()  # what the recorded results say, by name
    run: tuple[tuple[Text, str], ...] = ()  # where it was called: the run, its device, its versions
    is_recorded_wrong: bool = False
    is_drawn: bool = False  # its inputs are drawn from a seed, for the recorded ones are too large

    @property
    def shows_nothing(self) -> bool:
        """Whether the test was run and neither it nor the record shows anything wrong."""
        is_fine = self.outcome is not None and not self.outcome.kind.is_failure
        return is_fine and not self.is_recorded_wrong


@dataclass(frozen=True)
class LogExcerpt:
    """The lines of logs around what ended a run."""

    text: str
    cause: tuple[Text, ...] = ()  # why, and what to do, as far as a rule knows
    unread: Mapping[str, str] = field(default_factory=dict)  # log -> why


@dataclass(frozen=True)
class BundlePart:
    """One file of the archive."""

    name: str
    what: Text
    nbytes: int
    sha256: str


@dataclass(frozen=True)
class Bundle:
    """An archive, and what is not in it."""

    archive: str  # its name; "" if it was only looked at
    nbytes: int
    parts: tuple[BundlePart, ...]
    replaced: tuple[Replaced, ...]
    notes: tuple[Text, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
