"""The numbers of a report that a manager understands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchferry.finding import Finding, Kind, Severity
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.text import Text

# What a person should look at, the worst first.
ATTENTION = (Kind.UNSUPPORTED, Kind.TODO, Kind.UNKNOWN, Kind.RISK)
WORST_FIRST = (*ATTENTION, Kind.CHANGE, Kind.INFO)
_UNDONE = frozenset({Kind.TODO, Kind.UNSUPPORTED, Kind.UNKNOWN})

Counts = Mapping[Kind, int]


@dataclass(frozen=True)
class RuleCount:
    """How often one rule spoke, by kind, with its first finding as the example."""

    rule: str
    total: int
    counts: Counts
    severities: Mapping[Severity, int]
    example: Finding


@dataclass(frozen=True)
class FindingsSummary:
    """Counts of sites (places in the code), findings (remarks about them) and files.

    A site is a place that means CUDA and so needs work: done (automatic), to decide (todo), unsupported or
    unknown. Code that was rewritten and also carries a remark is one site, and not an automatic one. Risks
    and notes need no work: they are counted as findings only.
    """

    sites: int
    automatic: int
    todo: int
    unsupported: int
    unknown: int
    findings: int
    by_kind: Counts
    by_rule: tuple[RuleCount, ...]
    by_file: Mapping[str, Counts]
    files_seen: int
    files_changed: int
    files_failed: int

    @property
    def automatic_percent(self) -> float | None:
        """Share of the sites done automatically, rounded down so that 100 means all; None without sites."""
        return self.automatic * 1000 // self.sites / 10 if self.sites else None

    @property
    def percent(self) -> str:
        """The automatic share to show: '93.7%', '100%', or a dash without sites."""
        share = self.automatic_percent
        return "–" if share is None else f"{share:g}%"


def summarize(report: Report) -> FindingsSummary:
    """Count what a report holds."""
    by_kind = Counter(finding.kind for finding in report.findings)
    by_rule = sorted(_counts((finding.rule, finding.kind) for finding in report.findings).items())
    severities: dict[str, Counter[Severity]] = {}
    for finding in report.findings:
        severities.setdefault(finding.rule, Counter())[finding.severity] += 1
    examples = {finding.rule: finding for finding in reversed(report.findings)}  # the first of each
    automatic = automatic_sites(report.findings)
    statuses = Counter(record.status for record in report.files)
    return FindingsSummary(
        sites=automatic + sum(by_kind[kind] for kind in _UNDONE),
        automatic=automatic,
        todo=by_kind[Kind.TODO],
        unsupported=by_kind[Kind.UNSUPPORTED],
        unknown=by_kind[Kind.UNKNOWN],
        findings=len(report.findings),
        by_kind={kind: by_kind[kind] for kind in WORST_FIRST},
        by_rule=tuple(
            RuleCount(rule, sum(counts.values()), counts, severities[rule], examples[rule])
            for rule, counts in by_rule
        ),
        by_file=_counts((finding.path, finding.kind) for finding in report.findings),
        files_seen=report.files_seen,
        files_changed=statuses[FileStatus.CHANGED],
        files_failed=statuses[FileStatus.FAILED],
    )


def overview(report: Report, summary: FindingsSummary) -> list[tuple[Text, int]]:
    """The counts that every report begins with, after those of sites."""
    changed = words.FILES_CHANGED if report.command == "convert" else words.FILES_TO_CHANGE
    return [
        (words.TO_DECIDE, summary.todo),
        (words.UNSUPPORTED, summary.unsupported),
        (words.UNKNOWN, summary.unknown),
        (words.RISKS, summary.by_kind[Kind.RISK]),
        (words.LEFT, summary.by_kind[Kind.INFO]),
        (words.FILES_SEEN, summary.files_seen),
        (changed, summary.files_changed),
        (words.FILES_FAILED, summary.files_failed),
    ]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings as a reader goes through the project: by file, line and column."""
    return sorted(findings, key=lambda finding: (finding.path, finding.line, finding.col))


def automatic_sites(findings: Iterable[Finding]) -> int:
    """Changes that carry no remark: at each place, every undone finding takes one change with it."""
    changes: Counter[tuple[str, int, int]] = Counter()
    remarks: Counter[tuple[str, int, int]] = Counter()
    for finding in findings:
        place = (finding.path, finding.line, finding.col)
        if finding.kind is Kind.CHANGE:
            changes[place] += 1
        elif finding.kind in _UNDONE:
            remarks[place] += 1
    return sum((changes - remarks).values())


def _counts(found: Iterable[tuple[str, Kind]]) -> dict[str, Counter[Kind]]:
    counts: dict[str, Counter[Kind]] = {}
    for name, kind in found:
        counts.setdefault(name, Counter())[kind] += 1
    return counts
