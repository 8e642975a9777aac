"""The HTML page as text: self-contained, and nothing in the data can leave its element."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from torchferry.outcome import Report
from torchferry.report.findings import REPORTS, words
from torchferry.report.formats import Options

from .samples import empty_report, hostile_report, one_finding, sample_report


def page(report: Report, options: Options | None = None) -> str:
    return REPORTS.render(report, "html", options or Options()).decode("utf-8")


def data_of(text: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="findings-data">(.*?)</script>', text, re.DOTALL)
    assert match
    data: dict[str, Any] = json.loads(match.group(1))
    return data


@pytest.mark.parametrize(
    "report", [sample_report(), hostile_report(), empty_report()], ids=["sample", "hostile", "empty"]
)
def test_one_page_that_fetches_nothing(report: Report) -> None:
    text = page(report)
    assert text.count("<script") == (3 if report.findings else 2) == text.count("</script>")
    assert text.count("<!--") == 0
    assert "default-src 'none'" in text
    assert not re.search(r"<(img|iframe|object|embed)|@import|url\(|\bsrc=|fetch\(|XMLHttpRequest", text)
    assert len(data_of(text)["findings"] if report.findings else []) == len(report.findings)


def test_placeholders_in_the_data_are_data() -> None:
    text = page(one_finding(before="%%SCRIPT%% %%STYLE%%"))
    assert data_of(text)["findings"][0][4] == "%%SCRIPT%% %%STYLE%%"


def test_both_languages_are_in_the_page() -> None:
    data = data_of(page(one_finding(), Options("zh")))
    assert data["texts"][0] == ["The device is npu.", "设备是 npu。"]
    assert all(len(pair) == 2 and all(pair) for pair in data["words"].values())


def test_placeholders_are_the_same_in_both_languages() -> None:
    for text in words.PAGE.values():
        assert set(re.findall(r"\{\w+\}", text.en)) == set(re.findall(r"\{\w+\}", text.zh))


def test_only_web_addresses_become_links() -> None:
    assert (
        data_of(page(one_finding(url="https://example.com/x")))["items"][0]["url"] == "https://example.com/x"
    )
    assert data_of(page(one_finding(url="javascript:alert(1)")))["items"][0]["url"] == ""


def test_a_file_without_a_record_is_listed() -> None:
    report = one_finding()
    data = data_of(page(Report("scan", "ascend", "p", 1, (), report.findings)))
    assert data["files"] == [["train.py", "unchanged", "", []]]


def test_title_is_escaped() -> None:
    assert "<title>&lt;/title&gt;&lt;b&gt;project\\xff → ven&lt;dor&gt; · TorchFerry</title>" in page(
        hostile_report()
    )


def test_same_report_same_bytes() -> None:
    assert page(sample_report()) == page(sample_report())
