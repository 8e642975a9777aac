"""SARIF 2.1.0: structure, levels, regions, addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from torchferry.finding import Kind, RuleDoc
from torchferry.outcome import Report
from torchferry.report.findings.sarif import render
from torchferry.report.formats import Options
from torchferry.text import Text

from .samples import empty_report, hostile_report, one_finding, sample_report


def run_of(report: Report, options: Options | None = None) -> dict[str, Any]:
    log = json.loads(render(report, options or Options()))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    run: dict[str, Any] = log["runs"][0]
    return run


def result_of(report: Report) -> dict[str, Any]:
    (result,) = run_of(report)["results"]
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize(
    "report", [sample_report(), hostile_report(), empty_report()], ids=["sample", "hostile", "empty"]
)
def test_structure(report: Report) -> None:
    run = run_of(report)
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert len(run["results"]) == len(report.findings)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert place["region"]["startColumn"] >= 1
        assert place["artifactLocation"]["uri"].isascii()


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        (Kind.CHANGE, "note"),
        (Kind.TODO, "warning"),
        (Kind.UNSUPPORTED, "error"),
        (Kind.UNKNOWN, "note"),
        (Kind.RISK, "note"),
        (Kind.INFO, "note"),
    ],
)
def test_levels(kind: Kind, level: str) -> None:
    assert result_of(one_finding(kind=kind))["level"] == level


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("models/resnet.py", "models/resnet.py"),
        ("a b/c%d.py", "a%20b/c%25d.py"),
        ("模型.py", "%E6%A8%A1%E5%9E%8B.py"),
        ("c:x.py", "c%3Ax.py"),
        ("bad\udcff.py", "bad%FF.py"),
    ],
)
def test_addresses_are_relative_and_encoded(path: str, uri: str) -> None:
    place = result_of(one_finding(path=path))["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": uri, "uriBaseId": "%SRCROOT%"}


@pytest.mark.parametrize(
    ("before", "end"),
    [("model.cuda()", (12, 25)), ("f(\n  x)", (13, 5)), ("", (None, None))],
    ids=["one line", "two lines", "an insertion"],
)
def test_region_ends_where_the_old_text_ends(before: str, end: tuple[int | None, int | None]) -> None:
    region = result_of(one_finding(before=before))["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"]) == (12, 13)
    assert (region.get("endLine"), region.get("endColumn")) == end


def test_failed_files_are_notifications() -> None:
    (invocation,) = run_of(sample_report())["invocations"]
    (note,) = invocation["toolExecutionNotifications"]
    assert invocation["executionSuccessful"] is False
    assert "Python 2" in note["message"]["text"]


def test_language_and_rule_docs() -> None:
    options = Options("zh", rule_docs={"TF120": RuleDoc(Text("Moves to the device", "迁移到设备"))})
    run = run_of(one_finding(), options)
    assert run["language"] == "zh-CN"
    assert run["results"][0]["message"]["text"] == "设备是 npu。"
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "迁移到设备"
