"""The page in a real browser: heat map, filters, sorting, links, languages, hostile text, no request to anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from tests.readiness.samples import empty, hostile, large, sample
from torchferry.readiness.model import Readiness
from torchferry.readiness.report import REPORTS
from torchferry.report.formats import Options

pytestmark = NEEDS_BROWSER


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report."""
    with quiet_pages(browser) as open_file:

        def open_report(readinesses: list[Readiness], folder: Path | None = None, **options: Any) -> Any:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
            REPORTS.write(readinesses, path, Options(folder=folder))
            return open_file(path, **options)

        yield open_report


def shown_operators(page: Any) -> list[str]:
    rows = page.locator(".operators > tbody:visible > tr:first-child > th")
    return [text.removeprefix("aten::") for text in rows.all_inner_texts()]


def test_what_a_reader_does(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("\n" * 8 + "sparse = weights.to_sparse()  # <b>\n", "utf-8")
    page = open_page(sample(), tmp_path, viewport={"width": 1280, "height": 900})
    assert page.locator(".device .big").all_inner_texts() == ["82.0%", "70.0%", "98.0%", "?"]

    problems = page.locator(".problem")
    assert [" ".join(text.split()) for text in problems.locator("h3").all_inner_texts()] == [
        "aten::to_sparse", "aten::max_pool2d_with_indices_backward", "aten::add.Tensor",
    ]  # fmt: skip
    assert "return x.unfold(2, 3, 2)" in problems.nth(1).inner_text()

    pool = page.locator(".tree summary", has_text="MaxPool2d")
    assert [" ".join(text.split()) for text in pool.locator(".cell").all_inner_texts()][:2] == [
        "35.7% ↩ CPU fallback", "100%",
    ]  # fmt: skip
    assert pool.get_attribute("title") == "aten::max_pool2d_with_indices_backward"
    conv = page.locator(".tree summary", has_text="Conv2d")
    assert not page.locator(".tree .call", has_text="aten::convolution").is_visible()
    conv.focus()
    page.keyboard.press("Enter")
    assert page.locator(".tree .call", has_text="aten::convolution").is_visible()

    assert shown_operators(page)[0] == "to_sparse"
    page.locator(".operators thead button", has_text="Calls").click()
    assert shown_operators(page)[0] == "add.Tensor"
    page.click("[data-support=fallback]")
    page.click("[data-support=limited]")
    assert sorted(shown_operators(page)) == ["add.Tensor", "max_pool2d_with_indices_backward"]
    page.click("[data-device='0']")
    assert shown_operators(page) == ["max_pool2d_with_indices_backward"]
    assert page.inner_text("#shown") == "1 of 6 operators"
    page.locator(".tree .call a", has_text="aten::to_sparse").click()
    page.locator(".operators > tbody:visible").nth(
        5
    ).wait_for()  # the page hears of its new address some time later
    assert len(shown_operators(page)) == 6
    advice = page.locator(".operators tbody:target .judgements").inner_text()
    assert "leave it on the CPU: it is rarely called" in advice
    page.locator(".operators tbody:target .uses a").first.click()
    assert page.inner_text(".code tr:target td:last-child") == "sparse = weights.to_sparse()  # <b>"
    page.fill("#query", "LAYER2.0")
    assert shown_operators(page) == ["add.Tensor"]

    page.click("[data-language=zh-CN]")
    text = page.inner_text("main") + page.inner_text(".overview")
    assert "回退到 CPU" in text and "6 个算子中的 1 个" in text
    for word in ("Operator", "missing", "Search", "Expand", "unknown"):
        assert word not in text


def test_without_javascript(open_page: Open) -> None:
    """All can be read and opened; what would do nothing is not shown."""
    page = open_page(sample(), java_script_enabled=False, viewport={"width": 390, "height": 800})
    assert (
        not page.is_visible(".filters")
        and not page.is_visible(".languages")
        and not page.is_visible(".tools")
    )
    page.locator(".more-of summary").nth(1).click()
    assert "return x.unfold(2, 3, 2)" in page.inner_text("details[open] pre")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_text_is_text(open_page: Open) -> None:
    page = open_page(hostile(), viewport={"width": 390, "height": 800})
    page.click("[data-open=true]")
    for opener in page.locator(".opener").all():
        opener.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, a[href^=javascript]").count() == 0
    assert "\u202e" not in page.content()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_large_and_empty(open_page: Open) -> None:
    page = open_page(large())
    page.fill("#query", "encoder.layers.7.")
    assert 0 < len(shown_operators(page)) < 40
    assert "further uses are in the JSON and XLSX reports" in (page.text_content("#operators") or "")
    page = open_page(empty())
    assert page.inner_text(".device .big") == "–" and page.locator(".tree").count() == 0
