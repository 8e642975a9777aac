"""findings.json: exact round trip, and errors that name the place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchferry.errors import ReportError
from torchferry.outcome import Report
from torchferry.report.findings.json import dump, load, read_findings

from .samples import empty_report, hostile_report, large_report, one_finding, sample_report


@pytest.mark.parametrize("make", [sample_report, empty_report, hostile_report, large_report])
def test_round_trip_is_exact(make: Callable[[], Report]) -> None:
    report = make()
    data = dump(report)
    assert load(data) == report
    assert dump(load(data)) == data


def test_format() -> None:
    tree = json.loads(dump(one_finding()))
    assert list(tree) == [
        "format", "version", "tool", "command", "vendor", "project", "files_seen", "summary", "files", "findings",
    ]  # fmt: skip
    assert (tree["format"], tree["version"]) == ("torchferry-findings", 2)
    assert tree["summary"]["automatic_percent"] == 100
    assert tree["files"] == [
        {
            "path": "train.py",
            "status": "changed",
            "reason": "",
            "hunks": [{"old_start": 12, "new_start": 12, "lines": [["~", "model.cuda()", "model.npu()"]]}],
        }
    ]
    assert tree["findings"] == [
        {
            "rule": "TF120",
            "kind": "change",
            "path": "train.py",
            "line": 12,
            "col": 13,
            "before": "model.cuda()",
            "after": "model.npu()",
            "title": "The device is npu.",
            "title_zh": "设备是 npu。",
            "vendor": "ascend",
            "url": "",
            "why": "",
            "why_zh": "",
            "do": "",
            "do_zh": "",
            "severity": "done",
            "effort": 0,
            "effort_each": 0,
            "source": "",
        }
    ]


def test_chinese_is_readable_and_odd_file_names_are_escaped() -> None:
    data = dump(one_finding(path="caf\udce9.py"))
    assert "设备是 npu。".encode() in data
    assert rb'"caf\udce9.py"' in data


def test_a_byte_order_mark_is_no_error() -> None:
    assert load(b"\xef\xbb\xbf" + dump(sample_report())) == sample_report()


def broken(change: Callable[[Any], object]) -> bytes:
    tree = json.loads(dump(one_finding()))
    change(tree)
    return json.dumps(tree).encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a TorchFerry findings file"),
        (b'{"format": "eslint"}', "not a TorchFerry findings file"),
        (broken(lambda tree: tree.update(version=3)), "newer TorchFerry (format 3, this one reads up to 2)"),
        (broken(lambda tree: tree.pop("vendor")), "vendor is missing"),
        (broken(lambda tree: tree.update(files_seen=True)), "files_seen must be a whole number"),
        (broken(lambda tree: tree.update(findings={})), "findings must be a list"),
        (broken(lambda tree: tree.update(findings=[3])), "findings[0] must be an object"),
        (broken(lambda tree: tree["findings"][0].pop("line")), "findings[0].line is missing"),
        (
            broken(lambda tree: tree["findings"][0].update(kind="bad")),
            "findings[0].kind must be one of change, todo",
        ),
        (broken(lambda tree: tree["files"][0].update(status="x")), "files[0].status must be one of changed"),
        (
            broken(lambda tree: tree["files"][0]["hunks"][0]["lines"].append(["?", "", ""])),
            "files[0].hunks[0].lines[1] must be [tag, old, new]",
        ),
    ],
)
def test_bad_files(data: bytes, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    with pytest.raises(ReportError) as caught:
        load(data, "out/findings.json")
    assert str(caught.value).startswith("out/findings.json: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_errors_in_chinese() -> None:
    with pytest.raises(ReportError) as problem:
        load(b"?")
    assert "不是 JSON" in problem.value.text.zh


def test_missing_file_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    with pytest.raises(ReportError, match=r"no such file; 'ferry scan"):
        read_findings(tmp_path / "none.json")
    with pytest.raises(ReportError, match="a folder"):
        read_findings(tmp_path)


def test_a_file_of_an_older_version_is_read() -> None:
    tree = json.loads(dump(one_finding()))
    tree["version"] = 1
    new = ("title", "title_zh", "why", "why_zh", "do", "do_zh", "severity", "effort", "effort_each", "source")
    for finding in tree["findings"]:
        finding |= {"message": finding["title"], "message_zh": finding["title_zh"]}
        for key in new:
            del finding[key]
    assert load(json.dumps(tree).encode()) == one_finding()
