"""The page in a real browser: verdict, timeline, tables, languages, narrow and dark, hostile text, no request anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from tests.perf.report.samples import bottleneck, compared, healthy, hostile, large, ranks
from torchferry.perf.model import Evidence
from torchferry.perf.report import REPORTS
from torchferry.perf.report.sentences import RunsReport

pytestmark = NEEDS_BROWSER


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report."""
    with quiet_pages(browser) as open_file:

        def open_report(report: RunsReport, **options: Any) -> Any:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
            REPORTS.write(report, path)
            return open_file(path, **options)

        yield open_report


def view(page: Any) -> tuple[float, float]:
    """What the timeline shows, in microseconds."""
    page.wait_for_function("document.querySelector('canvas').dataset.view")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    start, end = page.locator("canvas").get_attribute("data-view").split()
    return float(start), float(end)


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("#operator-table tbody td:first-child").all_inner_texts()
    return found


def place(page: Any, microseconds: float, lane: int, row: int = 0) -> dict[str, float]:
    """Where on the canvas a moment of a row lies; lanes before it must have one row."""
    start, end = view(page)
    width = page.locator("canvas").bounding_box()["width"]
    top = 22 + 18 + lane * (18 + 16 + 8) + row * 16 + 7
    return {"x": (microseconds - start) / (end - start) * width, "y": top}


def test_what_a_reader_does(open_page: Open) -> None:
    page = open_page(bottleneck(), viewport={"width": 1280, "height": 900})
    assert page.inner_text(".card h2") == "Bottleneck: the program waits for data."
    assert "40.0%" in page.inner_text(".legend") and page.locator(".card .bar rect").count() == 3
    card = page.inner_text("#finding-1")
    assert (
        "high" in card
        and "up to 35.0%" in card
        and page.inner_text("#finding-1 code >> nth=0") == "ferry doctor host"
    )
    assert names(page) == ["aten::mm", "aten::add", "aten::relu"]

    page.locator("#operator-table thead button").nth(5).click()  # host time
    assert names(page) == ["aten::relu", "aten::add", "aten::mm"]
    page.locator("#operator-table thead button").nth(5).click()
    assert names(page) == ["aten::mm", "aten::add", "aten::relu"]
    page.fill("#operator-table-query", "MODEL.py:7")
    assert names(page) == ["aten::add"] and "1 of 3 shown" in page.inner_text("#operator-table .shown")
    assert "MatMulV2" in page.inner_text("#kernel-table") and "1.0 GiB" in page.inner_text("#memory")
    assert page.locator("#steps g").count() == 2
    assert "non_contiguous, copies: needs strides" in page.inner_text("#about")


def test_the_timeline_moves(open_page: Open) -> None:
    page = open_page(bottleneck(), viewport={"width": 1280, "height": 900})
    assert view(page) == (0.0, 100_000.0)  # the step that is shown in full
    canvas = page.locator("canvas")
    canvas.focus()
    page.keyboard.press("+")
    assert view(page) == (25_000.0, 75_000.0)
    page.keyboard.press("ArrowRight")
    assert view(page) == (37_500.0, 87_500.0)
    page.keyboard.press("Home")
    assert view(page) == (0.0, 100_000.0)
    page.keyboard.press("0")
    start, end = view(page)
    assert start <= 0 and end >= 200_000
    page.click("[data-view=step]")

    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 30)
    page.mouse.wheel(0, -300)
    start, end = view(page)
    assert end - start < 70_000 and abs((25_000 - start) / (end - start) - 0.25) < 0.01  # around the pointer
    before = view(page)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30, steps=3)
    page.mouse.up()
    after = view(page)
    assert after[0] < before[0] and abs((after[1] - after[0]) - (before[1] - before[0])) < 1


def test_bars_say_what_they_are(open_page: Open) -> None:
    page = open_page(bottleneck(), viewport={"width": 1280, "height": 900})
    page.locator("canvas").hover(position=place(page, 75_000, lane=1))
    assert page.inner_text(".hover").split("\n") == ["MatMulV2", "50.0 ms · @ 50.0 ms", "compute"]
    page.locator("canvas").hover(position=place(page, 25_000, lane=2, row=1))  # below its caller
    assert page.inner_text(".hover").split("\n")[:2] == ["aten::mm", "64×64, 64×32"]
    page.locator("canvas").hover(position=place(page, 45_500, lane=2))
    assert page.inner_text(".hover").startswith("7 short events")
    page.locator("canvas").click(position=place(page, 25_000, lane=2))
    assert page.inner_text("#bar").startswith("aten::linear · 64×64 · 30.0 ms")


def test_evidence_leads_to_its_bar(open_page: Open) -> None:
    page = open_page(bottleneck(), viewport={"width": 1280, "height": 900})
    page.locator("#finding-1 .jump").click()
    assert page.inner_text("#bar").startswith("enumerate(DataLoader)#next")
    start, end = view(page)
    assert start < 100_000 < 140_000 < end and end - start < 130_000
    assert page.evaluate("document.querySelector('#timeline').getBoundingClientRect().top") < 300


def test_as_much_as_a_page_is_given(open_page: Open) -> None:
    page = open_page(large())
    assert len(names(page)) == 100 and page.inner_text("#operator-table .page") == "1 / 20"
    page.click("#operator-table .following")
    assert page.inner_text("#operator-table .page") == "2 / 20"
    page.fill("#operator-table-query", "aten::op7")
    assert len(names(page)) == 40 and not page.is_visible("#operator-table .pager")
    page.locator("canvas").hover(position=place(page, view(page)[0] + 5, lane=0))
    assert page.inner_text(".hover").startswith("aten::op0")


def test_languages(open_page: Open) -> None:
    page = open_page(compared())
    page.click("[data-language=zh-CN]")
    text = page.inner_text("main") + page.inner_text(".overview")
    assert "瓶颈：程序在等待数据" in text and "时间线" in text and "名称、形状、类型都相同" in text
    for word in (
        "Bottleneck",
        "Remedy",
        "Share",
        "Calls",
        "Timeline",
        "waiting",
        "Next",
        "same name",
        "Everything",
    ):
        assert word not in text
    assert page.get_attribute("#operator-table-query", "placeholder") == "搜索算子、形状、代码行"
    page.click("[data-language=en]")
    assert "瓶颈" not in page.inner_text(".overview")


def test_a_comparison(open_page: Open) -> None:
    page = open_page(compared())
    assert "2.00 times the baseline's" in page.inner_text("#comparison-0")
    first = page.locator("#pairs-0 tbody tr").first.inner_text()
    assert "aten::mm" in first and "+30.0 ms" in first and "4.00" in first
    page.locator("#pairs-0 thead button").nth(8).click()
    assert "cudnn_convolution" in page.locator("#pairs-0 tbody tr").first.inner_text()
    assert "aten::cast" in page.inner_text("#only-compared-0") and "aten::fused" in page.inner_text(
        "#only-baseline-0"
    )


def test_several_ranks_and_a_healthy_run(open_page: Open) -> None:
    page = open_page(ranks())
    assert page.locator("#ranks tbody tr").count() == 3 and page.inner_text("#ranks .slowest").startswith("1")
    assert "holds up the others" in page.inner_text(".card")
    assert "No detector found anything" in open_page(healthy()).inner_text("#findings")


@pytest.mark.parametrize("report", [bottleneck(), large(), compared(), ranks()])
def test_narrow(open_page: Open, report: RunsReport) -> None:
    page = open_page(report, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("canvas").bounding_box()["width"] > 300


def test_dark(open_page: Open) -> None:
    page = open_page(bottleneck(), color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 23, 30)"


def test_without_javascript(open_page: Open) -> None:
    """Verdict, findings and the greatest operators can be read; what would do nothing is not shown."""
    page = open_page(large(), java_script_enabled=False, viewport={"width": 390, "height": 800})
    assert page.locator("#operator-table tbody tr").count() == 50 and page.is_visible("#findings")
    for what in (".filters", ".pager", ".languages", ".jump", "canvas"):
        assert not page.locator(what).first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_text_is_text(open_page: Open) -> None:
    page = open_page(hostile(), viewport={"width": 390, "height": 800})
    page.locator(".jump").first.click()
    view(page)
    assert "onerror" in page.inner_text("#bar") and "onerror" in page.inner_text("#operator-table")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_evidence_on_a_narrow_screen_is_read_line_by_line(open_page: Open) -> None:
    def share_of_card(width: int) -> float:
        cell = open_page(bottleneck(), viewport={"width": width, "height": 800}).locator(".evidence td").first
        card = cell.locator("xpath=ancestor::article")
        return float(cell.bounding_box()["width"] / card.bounding_box()["width"])

    assert share_of_card(1200) < 0.5
    assert share_of_card(390) > 0.8


def test_columns_of_evidence_that_hold_nothing_are_left_out(open_page: Open) -> None:
    report = bottleneck()
    diagnosis = report.analyses[0].diagnoses[0]
    bare = replace(diagnosis, evidence=(Evidence("gloo:all_reduce", count=3, seconds=0.1, share=0.5),))
    page = open_page(replace(report, analyses=(replace(report.analyses[0], diagnoses=(bare,)),)))
    assert page.locator(".evidence th:visible").all_inner_texts() == ["What", "Count", "Time", "Share"]
    aligned = "getComputedStyle(document.querySelector('.evidence td:nth-child(2)')).textAlign"
    assert page.evaluate(aligned) == "right"
