"""The work list: causes, their order, their effort, and the whole report in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchferry.finding import Finding, Kind, Severity
from torchferry.outcome import Report
from torchferry.report.findings.words import work_time
from torchferry.report.findings.work_list import fingerprints, headline, work_list
from torchferry.text import Text

from .samples import one_finding

(_DONE,) = one_finding().findings
_DECISION = replace(
    _DONE,
    kind=Kind.TODO,
    severity=Severity.DECISION,
    title=Text("Wrapped", "包装"),
    effort=90,
    effort_each=10,
)


def report_of(*findings: Finding) -> Report:
    return replace(one_finding(), findings=findings)


def test_places_of_one_cause_share_the_recipe() -> None:
    places = [
        replace(_DECISION, path=path, line=line) for path, line in (("b.py", 3), ("a.py", 9), ("a.py", 2))
    ]
    (item,) = work_list(report_of(*places)).items
    assert [(each.path, each.line) for each in item.findings] == [("a.py", 2), ("a.py", 9), ("b.py", 3)]
    assert item.minutes == 90 + 3 * 10
    assert item.files == ("a.py", "b.py")


def test_another_title_or_severity_is_another_cause() -> None:
    others = (
        replace(_DECISION, title=Text("Something else", "其他")),
        replace(_DECISION, severity=Severity.BLOCKER),
        replace(_DECISION, rule="TF999"),
    )
    assert len(work_list(report_of(_DECISION, *others)).items) == 4


def test_the_worst_comes_first_then_the_largest_effort() -> None:
    small = replace(_DECISION, title=Text("Small", "小"), effort=5)
    blocker = replace(_DECISION, title=Text("Kernel", "kernel"), severity=Severity.BLOCKER, effort=1)
    items = work_list(report_of(_DONE, small, _DECISION, blocker)).items
    assert [item.title.en for item in items] == ["Kernel", "Wrapped", "Small", "The device is npu."]


def test_the_headline_counts_places_and_files() -> None:
    blocker = replace(
        _DECISION, severity=Severity.BLOCKER, title=Text("Kernel", "kernel"), path="k.cu", effort=240
    )
    work = work_list(report_of(_DONE, blocker, *(replace(_DECISION, line=line) for line in range(20, 23))))
    assert headline(work, "convert") == Text(
        "1 blocker, 3 decisions in 2 files; 1 place done; about 1 day",
        "2 个文件中有 1 个阻塞项、3 个待决定；已完成 1 处；约 1 天",
    )
    assert headline(work_list(report_of(_DONE)), "scan").en == "Nothing to decide; 1 place is automatic"


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (1, "5 min"),
        (22, "20 min"),
        (60, "1 hour"),
        (130, "2 hours"),
        (200, "half a day"),
        (480, "1 day"),
        (1000, "2 days"),
        (5 * 480, "5 days"),
        (30 * 480, "6 weeks"),
    ],
)
def test_time_is_said_as_roughly_as_it_is_known(minutes: int, words: str) -> None:
    assert work_time(minutes).en == words


def test_fingerprints_survive_moved_lines_and_new_words() -> None:
    again = replace(_DECISION, line=99, title=Text("New words", "新词"))
    assert fingerprints([_DECISION]) == fingerprints([again])
    assert len(set(fingerprints([_DECISION, _DECISION, replace(_DECISION, path="b.py")]))) == 3
