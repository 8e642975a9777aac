"""The door to the formats: writing at once, printing, and what every format must stand."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import get_args

import pytest

from torchferry.errors import OutputError, ReportError
from torchferry.report.findings import REPORTS
from torchferry.report.findings.json import read_findings
from torchferry.report.formats import Options
from torchferry.text import Language

from .samples import empty_report, hostile_report, sample_report


@pytest.mark.parametrize("language", get_args(Language))
@pytest.mark.parametrize("name", REPORTS.names)
def test_every_format_renders_every_report(name: str, language: Language) -> None:
    for report in (sample_report(), sample_report("scan"), hostile_report(), empty_report()):
        data = REPORTS.render(report, name, Options(language))
        assert data or (name == "github" and not report.findings)
        if name not in REPORTS.only_files:
            data.decode("utf-8")


def test_unknown_format() -> None:
    with pytest.raises(ReportError, match=r"pdf.*text, json, sarif"):
        REPORTS.render(empty_report(), "pdf")


def test_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "findings.json"
    REPORTS.write(empty_report(), path)
    REPORTS.write(sample_report(), path)
    assert read_findings(path) == sample_report()
    assert [entry.name for entry in path.parent.iterdir()] == ["findings.json"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "findings.json"
    REPORTS.write(sample_report(), path)

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match="No space left on device"):
        REPORTS.write(empty_report(), path)
    assert read_findings(path) == sample_report()
    assert [entry.name for entry in tmp_path.iterdir()] == ["findings.json"]


def test_a_folder_can_not_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        REPORTS.write(sample_report(), tmp_path, format_name="html")


def test_print_to_a_stream_without_bytes() -> None:
    stream = io.StringIO()
    REPORTS.show(sample_report(), "json", stream=stream)
    assert stream.getvalue().encode() == REPORTS.render(sample_report(), "json")


def test_print_to_a_stream_that_can_not_show_everything() -> None:
    for name in ("text", "github"):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding="ascii")
        REPORTS.show(hostile_report(), name, Options("zh"), stream)
        assert raw.getvalue()
