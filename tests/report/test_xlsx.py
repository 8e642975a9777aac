"""The workbook, opened again."""

from __future__ import annotations

import io
from typing import Any

import openpyxl
import pytest

from torchferry.outcome import Report
from torchferry.report.findings.sheets import to_xlsx
from torchferry.report.formats import Options

from .samples import empty_report, hostile_report, one_finding, sample_report


def workbook(report: Report, options: Options | None = None) -> Any:
    return openpyxl.load_workbook(io.BytesIO(to_xlsx(report, options or Options())))


def test_sheets() -> None:
    report = sample_report()
    book = workbook(report)
    assert book.sheetnames == ["Summary", "Findings", "Files"]
    assert book["Findings"].max_row == len(report.findings) + 1
    assert book["Files"].max_row == len(report.files) + 1
    facts = dict(book["Summary"].iter_rows(min_row=2, values_only=True))
    assert (facts["Project"], facts["Places that use CUDA"], facts["Share done automatically"]) == (
        "resnet-trainer",
        56,
        "82.1%",
    )
    for sheet in book:
        assert sheet.freeze_panes == "A2"
        assert sheet.auto_filter.ref.startswith("A1:")
        assert sheet.column_dimensions["A"].width >= 10
        assert sheet["A1"].font.bold
        assert sheet["A2"].alignment.wrap_text


def test_chinese() -> None:
    book = workbook(sample_report(), Options("zh"))
    assert book.sheetnames == ["概览", "发现", "文件"]
    assert book["发现"]["B1"].value == "类别"


@pytest.mark.parametrize("before", ["=1+1", "+1", "-x.cuda()", "@torch.cuda.amp.custom_fwd"])
def test_code_that_looks_like_a_formula_stays_text(before: str) -> None:
    cell = workbook(one_finding(before=before))["Findings"]["G2"]
    assert (cell.value, cell.data_type, bool(cell.quotePrefix)) == (before, "s", True)


def test_hostile_and_empty() -> None:
    report = hostile_report()
    sheet = workbook(report)["Findings"]
    assert sheet.max_row == len(report.findings) + 1
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
    assert sheet["D4"].value.endswith("\\xff,a:b.py")
    assert workbook(empty_report())["Findings"].max_row == 1


def test_a_cell_holds_only_so_much() -> None:
    assert len(workbook(one_finding(before="x" * 40_000))["Findings"]["G2"].value) == 32_767
