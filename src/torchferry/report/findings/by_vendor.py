"""What a migration of one project costs for several vendors, the one with the least work first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchferry.finding import Severity
from torchferry.outcome import Report
from torchferry.report.findings import words
from torchferry.report.findings.work_list import work_list
from torchferry.report.formats import Options, Reports
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.records import GOOD, Grade
from torchferry.text import Text


@dataclass(frozen=True)
class VendorWork:
    """The work list of one target in figures."""

    vendor: str
    blockers: int
    decisions: int
    checks: int
    done: int  # places that need nobody
    minutes: int


@dataclass(frozen=True)
class VendorsWork:
    """The same project for several targets."""

    project: str
    vendors: tuple[VendorWork, ...]  # the least work first

    @property
    def is_to_do(self) -> bool:
        """Whether one of them needs somebody."""
        return any(each.blockers or each.decisions or each.checks for each in self.vendors)


def compared(reports: Sequence[Report]) -> VendorsWork:
    """Fewer blockers are less work, then less time."""
    rows = sorted(map(_work, reports), key=lambda each: (each.blockers, each.minutes, each.vendor))
    return VendorsWork(reports[0].project, tuple(rows))


def _work(report: Report) -> VendorWork:
    work = work_list(report)
    severities = (Severity.BLOCKER, Severity.DECISION, Severity.CHECK)
    blockers, decisions, checks = (work.places[severity] for severity in severities)
    return VendorWork(report.vendor, blockers, decisions, checks, work.done, work.minutes)


_LEAST = Text("least work: {vendor} ({time})", "工作量最小：{vendor}（{time}）")
_TITLE = Text("{project} for {count} targets", "{project}：{count} 个目标对比")
_NAMES = (Severity.BLOCKER, Severity.DECISION, Severity.CHECK, Severity.DONE)
_NOTHING_TO_DO = Text("nothing to do", "无需处理")
_DETAILS = Text(
    "`ferry scan PATH --to VENDOR` lists the findings for one of them",
    "`ferry scan PATH --to VENDOR` 列出其中一个目标的发现",
)


def page_of(work: VendorsWork, options: Options) -> Page:
    """A row for each vendor."""
    columns = (
        Column(Text("target", "目标"), is_whole=True),
        *(Column(words.SEVERITY[severity].name, is_number=True) for severity in _NAMES),
        Column(Text("effort", "工作量"), is_whole=True),
    )
    rows = tuple(
        (
            Cell(each.vendor, is_code=True),
            *(
                Cell(f"{count:,}", value=count)
                for count in (each.blockers, each.decisions, each.checks, each.done)
            ),
            Cell(_time(each), value=each.minutes),
        )
        for each in work.vendors
    )
    first = work.vendors[0]
    grade = Grade(_LEAST.format(vendor=first.vendor, time=_time(first)), GOOD)
    title = _TITLE.format(project=work.project, count=len(work.vendors))
    return Page(title, ((grade.name, grade.style),), (Table(title, columns, rows),), (_DETAILS,))


def _time(work: VendorWork) -> Text:
    return words.work_time(work.minutes) if work.minutes else _NOTHING_TO_DO


REPORTS: Reports[VendorsWork] = Reports(page=f"{__name__}:page_of", document="torchferry-vendors-work")
