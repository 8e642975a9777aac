"""The HTML page in a real browser: filters, search, diff, languages, and no request to anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from torchferry.outcome import Report
from torchferry.report.findings import REPORTS

from .samples import empty_report, hostile_report, large_report, sample_report

pytestmark = NEEDS_BROWSER


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report."""
    with quiet_pages(browser) as open_file:

        def open_report(report: Report, fragment: str = "", **options: Any) -> Any:
            path = tmp_path / "report.html"
            REPORTS.write(report, path)
            return open_file(path, fragment, **options)

        yield open_report


def counts(page: Any) -> dict[str, int]:
    """The numbers on the tabs."""
    return {
        view: int(page.inner_text(f"[data-view={view}] .count").replace(",", ""))
        for view in ("findings", "files")
    }


def search(page: Any, query: str) -> None:
    """Type into the search box and wait until the page has answered: then the address holds the query."""
    page.fill("#query", query)
    page.wait_for_url(lambda url: urlencode({"q": query}) in url)


def test_overview(open_page: Open) -> None:
    page = open_page(sample_report())
    assert page.inner_text("h1") == "resnet-trainer → ascend"
    assert page.inner_text(".big") == "82.1%"
    assert page.locator(".bar rect").count() == 4
    assert counts(page) == {"findings": 64, "files": 10}


def test_filter_by_kind_and_share_the_link(open_page: Open) -> None:
    page = open_page(sample_report())
    page.click("[data-kind=unsupported]")
    assert counts(page) == {"findings": 4, "files": 3}
    assert page.locator(".item").count() == 4
    assert "kind=unsupported" in page.url
    page.click("[data-kind=todo]")
    assert counts(page)["findings"] == 7
    again = open_page(sample_report(), "#" + page.url.split("#")[1])
    assert counts(again)["findings"] == 7
    again.click("#clear")
    assert counts(again)["findings"] == 64


def test_filter_by_rule_and_file(open_page: Open) -> None:
    page = open_page(sample_report())
    page.select_option("#rule", "TF120")
    assert counts(page)["findings"] == 10
    page.select_option("#file", "eval.py")
    assert counts(page) == {"findings": 3, "files": 1}


def test_search_looks_at_code_messages_and_names(open_page: Open) -> None:
    page = open_page(sample_report())
    for query, findings in (
        ("CUDAExtension", 2),
        ("flash_attn", 1),
        ("重写", 4),
        ("meters.py tf501", 2),
        ("zzz", 0),
    ):
        page.fill("#query", query)
        page.wait_for_function(
            "query => location.hash.includes(new URLSearchParams({q: query}).toString())", arg=query
        )
        assert counts(page)["findings"] == findings, query
    assert page.inner_text("#view-findings") == "Nothing matches these filters."
    search(page, "AdaptiveAvgPool2d")  # a line of context, in no finding
    assert counts(page)["findings"] == 0


def test_expand_a_diff(open_page: Open) -> None:
    page = open_page(sample_report(), "#view=files")
    assert page.locator("table.diff").count() == 0  # built when opened
    page.click("summary:has-text('train.py')")
    row = page.locator("tr[data-line='32']")
    assert row.locator("td").all_inner_texts() == [
        "32",
        "    model.cuda(args.gpu)",
        "33",
        "    model.npu(args.gpu)",
    ]
    assert (row.locator("del").inner_text(), row.locator("ins").inner_text()) == ("cuda", "npu")
    note = page.locator("tr[data-line='32'] + tr.notes")
    assert "TF120" in note.inner_text()
    assert "goes to the device with .npu()" in note.inner_text()
    page.uncheck("input[type=checkbox]")
    assert not note.is_visible()


def test_from_a_finding_to_its_line_and_back(open_page: Open) -> None:
    page = open_page(sample_report())
    page.click("a.place:has-text('eval.py:8:19')")
    page.wait_for_selector("tr.target[data-line='8']")
    page.go_back()
    page.wait_for_selector(".group.unsupported")
    assert counts(page)["findings"] == 64


def test_switch_language(open_page: Open) -> None:
    page = open_page(sample_report(), "#view=files&file=eval.py")
    page.wait_for_selector("table.diff")
    page.click("[data-language=zh]")
    assert page.get_attribute("html", "lang") == "zh-CN"
    page.wait_for_selector("#main :text('目标平台不支持 DataParallel')")  # the file stays open
    page.click("[data-language=en]")
    page.wait_for_selector("#main :text('The target has no DataParallel')")


def test_keyboard(open_page: Open) -> None:
    page = open_page(sample_report())
    page.keyboard.press("/")
    page.keyboard.type("flash_attn")
    page.wait_for_url("**#q=flash_attn")
    page.focus("[data-view=files]")
    page.keyboard.press("Enter")
    page.focus("details.file summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("table.diff")


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_nothing_sticks_out_of_the_page(open_page: Open, width: int) -> None:
    for fragment in ("", "#view=files&file=eval.py", "#view=rules"):
        page = open_page(sample_report(), fragment, viewport={"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_text_is_text(open_page: Open) -> None:
    page = open_page(hostile_report(), "#view=files")
    page.click("text=Expand shown")
    page.wait_for_selector("table.diff")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main b, main script, main a[href^=javascript]").count() == 0
    assert "\\xff,a:b.py" in page.inner_text("#main")


def test_empty(open_page: Open) -> None:
    page = open_page(empty_report())
    assert "there is nothing to convert" in page.inner_text("#overview")
    assert not page.is_visible("#filters")


def test_twenty_thousand_findings(open_page: Open) -> None:
    page = open_page(large_report(20_000))
    assert counts(page) == {"findings": 20_000, "files": 200}
    assert page.locator(".item").count() <= 4 * 50
    page.click(".group.todo .more")
    assert page.locator(".group.todo .item").count() == 100
    search(page, "module_0033")
    assert counts(page) == {"findings": 100, "files": 1}
