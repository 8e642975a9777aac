"""The numbers: what is a site, what is automatic."""

from __future__ import annotations

import pytest

from torchferry.finding import Finding, Kind
from torchferry.outcome import Report
from torchferry.report.findings.summary import summarize
from torchferry.text import Text

from .samples import empty_report, sample_report


def report_of(*findings: tuple[Kind, int]) -> Report:
    """A report with findings given as (kind, line)."""
    made = tuple(
        Finding("TF1", kind, "a.py", line, 1, "x", "y", Text("m", "m"), "ascend") for kind, line in findings
    )
    return Report("convert", "ascend", "p", 1, (), made)


@pytest.mark.parametrize(
    ("findings", "sites", "automatic"),
    [
        pytest.param([], 0, 0, id="nothing"),
        pytest.param([(Kind.CHANGE, 1), (Kind.CHANGE, 2)], 2, 2, id="two rewrites"),
        pytest.param([(Kind.CHANGE, 1), (Kind.CHANGE, 1)], 2, 2, id="two rewrites that start at one place"),
        pytest.param([(Kind.CHANGE, 1), (Kind.UNKNOWN, 1)], 1, 0, id="rewritten but unknown is one site"),
        pytest.param([(Kind.UNKNOWN, 1), (Kind.CHANGE, 2)], 2, 1, id="unknown elsewhere is another site"),
        pytest.param(
            [(Kind.CHANGE, 1), (Kind.RISK, 1), (Kind.INFO, 2)], 1, 1, id="risk and info need no work"
        ),
        pytest.param([(Kind.TODO, 1), (Kind.UNSUPPORTED, 2)], 2, 0, id="undone"),
    ],
)
def test_sites(findings: list[tuple[Kind, int]], sites: int, automatic: int) -> None:
    summary = summarize(report_of(*findings))
    assert (summary.sites, summary.automatic) == (sites, automatic)
    assert summary.sites == summary.automatic + summary.todo + summary.unsupported + summary.unknown


def test_percent_is_rounded_down_so_that_100_means_all() -> None:
    almost = summarize(report_of(*[(Kind.CHANGE, line) for line in range(1, 2000)], (Kind.TODO, 2000)))
    assert almost.percent == "99.9%"
    assert summarize(report_of((Kind.CHANGE, 1))).percent == "100%"
    assert summarize(empty_report()).automatic_percent is None
    assert summarize(empty_report()).percent == "–"


def test_counts_by_rule_file_and_status() -> None:
    summary = summarize(sample_report())
    assert sum(rule.total for rule in summary.by_rule) == summary.findings == sum(summary.by_kind.values())
    assert sum(sum(counts.values()) for counts in summary.by_file.values()) == summary.findings
    assert (summary.files_seen, summary.files_changed, summary.files_failed) == (48, 8, 1)
    unsupported = next(rule for rule in summary.by_rule if rule.rule == "TF401")
    assert dict(unsupported.counts) == {Kind.UNSUPPORTED: 4}
