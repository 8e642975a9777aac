"""`ferry vendors -o` and `ferry rules -o`: what is printed, as a file in any format of tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from torchferry.cli.main import main
from torchferry.conversion.rule import all_rules
from torchferry.vendors.registry import vendor_names


def test_every_vendor_is_a_row(tmp_path: Path) -> None:
    assert main(["vendors", "-o", str(tmp_path / "all.csv"), "-o", str(tmp_path / "all.html")]) == 0
    rows = list(csv.reader((tmp_path / "all.csv").read_text("utf-8-sig").splitlines()))
    assert [row[0] for row in rows[1:]] == vendor_names()
    assert len(set(map(len, rows))) == 1 and all(rows[0])
    assert "torch_npu" in (tmp_path / "all.html").read_text()


def test_one_vendor_in_both_languages(tmp_path: Path) -> None:
    assert main(["vendors", "ascend", "-o", str(tmp_path / "one.html")]) == 0
    page = (tmp_path / "one.html").read_text()
    assert "ASCEND_RT_VISIBLE_DEVICES" in page and "华为" in page and "Huawei" in page


def test_every_rule_is_a_row_and_one_shows_its_example(tmp_path: Path) -> None:
    assert main(["rules", "-o", str(tmp_path / "all.csv")]) == 0
    rows = list(csv.reader((tmp_path / "all.csv").read_text("utf-8-sig").splitlines()))
    assert [row[0] for row in rows[1:]] == [rule.id for rule in all_rules()]
    assert main(["rules", "tf105", "-o", str(tmp_path / "one.md")]) == 0
    page = (tmp_path / "one.md").read_text()
    assert page.startswith("# TF105 ") and '`"cuda:0" → "mlu:0"`' in page


def test_a_file_of_no_known_format_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "-o", str(tmp_path / "x.pdf")]) == 2
    assert not (tmp_path / "x.pdf").exists() and ".html" in capfd.readouterr().err
