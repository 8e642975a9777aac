"""The work list: findings grouped by cause, the worst first, with what each cause and all together cost."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from torchferry.finding import Finding, Severity
from torchferry.outcome import Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import automatic_sites, in_order
from torchferry.report.records import Grade
from torchferry.text import Text

OPEN = (Severity.BLOCKER, Severity.DECISION, Severity.CHECK)  # what a person has to look at
MUST = (Severity.BLOCKER, Severity.DECISION)  # what can't wait


@dataclass(frozen=True)
class WorkItem:
    """One cause with all its places: findings of a rule with one title and one severity."""

    findings: tuple[Finding, ...]  # by file, line and column

    @property
    def first(self) -> Finding:
        """The finding that stands for all."""
        return self.findings[0]

    @property
    def rule(self) -> str:
        return self.first.rule

    @property
    def severity(self) -> Severity:
        return self.first.severity

    @property
    def title(self) -> Text:
        return self.first.title

    @property
    def minutes(self) -> int:
        """The recipe once, and the cost of each place."""
        return max(each.effort for each in self.findings) + sum(each.effort_each for each in self.findings)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The files of its places."""
        return tuple(dict.fromkeys(finding.path for finding in self.findings))


@dataclass(frozen=True)
class WorkList:
    """Everything that was found, by cause."""

    items: tuple[WorkItem, ...]  # the worst first; within a severity the largest effort
    done: int  # places that need nobody

    def of(self, *severities: Severity) -> list[WorkItem]:
        """The causes of these severities."""
        return [item for item in self.items if item.severity in severities]

    @cached_property
    def places(self) -> Mapping[Severity, int]:
        """How many places each severity has."""
        counts = Counter(item.severity for item in self.items for _ in item.findings)
        return {severity: counts[severity] for severity in Severity}

    @property
    def files(self) -> int:
        """Files with a place that a person has to look at."""
        return len({path for item in self.of(*OPEN) for path in item.files})

    @property
    def minutes(self) -> int:
        """The effort of everything."""
        return sum(item.minutes for item in self.items)


def work_list(report: Report) -> WorkList:
    """Group what a report holds by cause."""
    causes: dict[tuple[str, Severity, Text], list[Finding]] = {}
    for finding in in_order(report.findings):
        causes.setdefault((finding.rule, finding.severity, finding.title), []).append(finding)
    items = sorted(map(_item, causes.values()), key=_rank)
    return WorkList(tuple(items), automatic_sites(report.findings))


def _item(findings: Iterable[Finding]) -> WorkItem:
    return WorkItem(tuple(findings))


_ORDER = {severity: rank for rank, severity in enumerate(Severity)}


def _rank(item: WorkItem) -> tuple[int, int, int, str, Text]:
    return _ORDER[item.severity], -item.minutes, -len(item.findings), item.rule, item.title


def headline(work: WorkList, command: str) -> Text:
    """The whole report in one line: 3 blockers, 17 decisions in 6 files; 109 places done; about half a day."""
    counts = [words.counted(severity, work.places[severity]) for severity in OPEN if work.places[severity]]
    parts = [words.NO_WORK]
    if counts:
        parts = [words.IN_FILES[work.files != 1].format(what=words.listed(counts), count=f"{work.files:,}")]
    parts.append(words.counted(Severity.DONE, work.done, command))
    if work.minutes:
        parts.append(words.about_time(work.minutes))
    return Text("; ".join(each.en for each in parts), "；".join(each.zh for each in parts))


def grade(report: Report) -> Grade:
    """The headline, in the tone of the worst that is left to do."""
    work = work_list(report)
    left = next((severity for severity in OPEN if work.places[severity]), Severity.DONE)
    return Grade(headline(work, report.command), words.SEVERITY[left].tone)


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """A name for each finding that stays the same when lines move or words of a message change."""
    seen: Counter[tuple[str, ...]] = Counter()
    names = []
    for finding in findings:
        what = (finding.rule, finding.path, finding.before, finding.source)
        seen[what] += 1
        text = "\0".join((*what, str(seen[what])))
        names.append(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16])
    return names
