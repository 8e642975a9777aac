"""The page in a real browser: verdict, tree, table of pages, curves, languages, hostile text, no request to anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.report.samples import alone, faulty, hostile, large, ranks, statistical
from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.report import REPORTS

pytestmark = NEEDS_BROWSER


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report."""
    with quiet_pages(browser) as open_file:

        def open_report(comparisons: list[RankComparison], **options: Any) -> Any:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
            REPORTS.write(comparisons, path)
            return open_file(path, **options)

        yield open_report


def shown(page: Any) -> list[str]:
    return [text.split("\n")[0] for text in page.locator(".calls tr.opens td:nth-child(2)").all_inner_texts()]


def test_what_a_reader_does(open_page: Open) -> None:
    page = open_page(faulty(), viewport={"width": 1280, "height": 900})
    assert (
        page.inner_text(".card h2") == "aten::relu computes wrong results: wrong from some element to the end"
    )
    assert "ferry case aten::relu --from npu.h5 --call 2 --to ascend" in page.inner_text(".card")
    assert "above the normal 1e-4" in page.inner_text(".card")

    layer = page.locator(".tree summary", has_text="layer1")
    assert "fault" in layer.inner_text() and "bad" in (layer.get_attribute("class") or "")
    assert (
        "fault" in page.locator(".tree summary").first.inner_text()
    )  # the worst below colours what is above
    fc = page.locator(".tree .leaf", has_text="fc").first
    assert "normal" in fc.inner_text() and "bad" not in (fc.get_attribute("class") or "")

    assert shown(page)[:2] == ["aten::relu", "lib::fast_gelu"]  # the worst first
    assert page.locator("[data-verdict=unknown]").count() == 0  # a call of golden alone has no verdict
    page.locator(".calls thead button").nth(0).click()
    assert shown(page)[0] == "aten::mm"
    page.locator(".calls thead button").nth(3).click()
    assert shown(page)[0] == "aten::relu"
    page.click("[data-verdict=suspicious]")
    assert shown(page) == ["lib::fast_gelu"] and "1 of 7 shown" in page.inner_text("#shown")
    page.click("#clear")
    page.fill("#query", "train.py:33")
    assert shown(page) == ["aten::mm"]
    page.click("#clear")

    page.click("[data-module='Net/layer1']")
    assert sorted(shown(page)) == ["aten::mm", "aten::relu"]
    page.click("#chosen")
    assert len(shown(page)) == 7


def test_a_call_opens(open_page: Open) -> None:
    page = open_page(faulty())
    row = page.locator(".calls tr.opens", has_text="aten::relu")
    row.focus()
    page.keyboard.press("Enter")
    more = page.inner_text(".calls .more-of")
    assert "the last 100 of 512 elements are wrong" in more and "output/output_0 float32[16,32]" in more
    assert "......##" in more and "0.25" in more
    row.click()
    assert page.locator(".calls .more-of").count() == 0


def test_ten_thousand_calls_are_shown_in_pages(open_page: Open) -> None:
    page = open_page(large())
    assert len(shown(page)) == 100
    page.click(".following")
    assert page.inner_text(".pager .page") == "2 / 100" and len(shown(page)) == 100
    page.fill("#query", "layers.7.fc")
    assert 0 < len(shown(page)) <= 50 and page.inner_text(".pager .page") == "1 / 1"
    assert page.is_disabled(".following")
    assert [text.split()[1] for text in page.locator(".steps tbody td").all_inner_texts()] == [
        "suspicious"
    ] * 3


def test_languages(open_page: Open) -> None:
    page = open_page(faulty())
    page.click("[data-language=zh-CN]")
    text = page.inner_text("main") + page.inner_text(".overview")
    assert "计算错误" in text and "步与阶段" in text and "从某个元素起直到末尾都错" in text
    for word in ("wrong", "Verdict", "Modules", "suspicious", "Search", "Expand", "forward"):
        assert word not in text
    page.click("[data-language=en]")
    assert "计算错误" not in page.inner_text(".overview")


def test_curves_are_drawn_with_gaps_where_there_is_no_number(open_page: Open) -> None:
    page = open_page(statistical())
    golden, mine = (
        page.locator(f"figure >> nth=0 >> .plot .s{place} .curve").get_attribute("d") or ""
        for place in range(2)
    )
    assert mine.count("M") + mine.count("L") == 2  # the third is not a number
    assert golden.count("M") + golden.count("L") == 3
    box = page.locator("figure .plot").first.bounding_box()
    assert box and box["width"] > 200
    page.click("figure summary")
    assert "2.4" in page.inner_text("figure table")


def test_dark(open_page: Open) -> None:
    page = open_page(faulty(), color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 23, 30)"


def test_several_ranks_and_a_record_alone(open_page: Open) -> None:
    page = open_page(ranks())
    assert page.locator(".card").count() == 2 and "rank 1" in page.inner_text(".tree")
    page.click("[data-module='rank 1/Net/layer1']")
    assert sorted(shown(page)) == ["aten::mm", "aten::relu"]
    assert "npu.h5" in open_page(alone()).inner_text("h1")


def test_without_javascript(open_page: Open) -> None:
    """The verdict, the tree and the worst calls can be read; what would do nothing is not shown."""
    page = open_page(large(), java_script_enabled=False, viewport={"width": 390, "height": 800})
    assert (
        not page.is_visible(".filters")
        and not page.is_visible(".pager")
        and not page.is_visible(".languages")
    )
    assert page.locator(".calls tbody tr").count() == 50
    assert page.is_visible("noscript p.quiet")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_text_is_text(open_page: Open) -> None:
    page = open_page(hostile(), viewport={"width": 390, "height": 800})
    page.locator(".calls tr.opens").first.click()
    page.locator("[data-module]").last.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, a[href^=javascript]").count() == 0
    assert "\u202e" not in page.content()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_number_is_never_broken(open_page: Open) -> None:
    page = open_page(faulty(), viewport={"width": 1280, "height": 800})
    heights = page.locator(".calls tr.opens td.number").evaluate_all(
        "cells => cells.map((cell) => { const text = document.createRange(); text.selectNodeContents(cell);"
        " return text.getClientRects().length; })"
    )
    assert heights and max(heights) == 1
