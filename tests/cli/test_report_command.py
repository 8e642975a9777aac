"""ferry report: where the report goes, and what is said when it can't be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.cli import report as command
from torchferry.cli.main import parser_of
from torchferry.conversion.rule import all_rules
from torchferry.errors import OutputError, ReportError
from torchferry.finding import Finding, Kind
from torchferry.outcome import FileRecord, FileStatus, Report
from torchferry.report.findings import REPORTS
from torchferry.report.findings.json import dump
from torchferry.text import Text


@pytest.fixture
def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    finding = Finding(
        "TF120", Kind.CHANGE, "a.py", 1, 1, "x.cuda()", "x.npu()", Text("To npu.", "到 npu。"), "ascend"
    )
    report = Report("scan", "ascend", "demo", 1, (FileRecord("a.py", FileStatus.CHANGED),), (finding,))
    path = tmp_path / "findings.json"
    path.write_bytes(dump(report))
    return path


def run(*arguments: object) -> int:
    return command.run(parser_of("report").parse([str(argument) for argument in arguments]))


def test_the_command_knows_every_format() -> None:
    assert set(command.FORMAT_NAMES) == set(REPORTS.names)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text", "TorchFerry scan: demo → ascend"),
        ("json", '"torchferry-findings"'),
        ("sarif", '"2.1.0"'),
        ("github", "::notice title=TorchFerry::"),
        ("md", "# TorchFerry report"),
        ("csv", "TF120,change,done,a.py,1,1"),
    ],
)
def test_text_formats_go_to_stdout(
    findings: Path, name: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(findings, "--format", name) == 0
    output, errors = capsys.readouterr()
    assert expected in output
    assert errors == ""


@pytest.mark.parametrize("name", ["html", "xlsx"])
def test_others_go_beside_the_findings_and_say_so(
    findings: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(findings, "--format", name) == 0
    written = findings.with_suffix(f".{name}")
    assert written.stat().st_size > 1000
    assert capsys.readouterr() == ("", f"Report written to {written}\n")


def test_output_file_and_language(findings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "报告.md"
    assert run(findings, "--format", "md", "-o", target, "--lang", "zh") == 0
    assert "到 npu。" in target.read_text(encoding="utf-8")
    assert capsys.readouterr() == ("", f"报告已写入 {target}\n")


def test_rules_are_explained(findings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = all_rules()[0]
    findings.write_bytes(findings.read_bytes().replace(b"TF120", rule.id.encode()))
    assert run(findings, "--format", "sarif", "--lang", "zh") == 0
    assert rule.summary.zh in capsys.readouterr().out


def test_dash_is_stdout(findings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(findings, "--format", "html", "-o", "-") == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")


def test_bad_input_and_output(findings: Path, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no such file"):
        run(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ReportError, match="not a TorchFerry findings file"):
        run(tmp_path / "bad.json")
    with pytest.raises(OutputError, match="can't be written"):
        run(findings, "--format", "md", "-o", tmp_path)
