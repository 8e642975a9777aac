"""The page of curves in a real browser: what is drawn, chosen and kept in the address; how it follows a run from a file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.curves.samples import WatchedFile, watched
from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from torchferry.accuracy.curves import live
from torchferry.accuracy.curves.live import LivePage
from torchferry.accuracy.curves.reports import REPORTS
from torchferry.accuracy.curves.trends import trends_of
from torchferry.accuracy.watch import rows
from torchferry.report.formats import Options

pytestmark = NEEDS_BROWSER


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens the curves of these files."""
    with quiet_pages(browser) as open_file:

        def open_curves(*paths: Path, fragment: str = "", **options: Any) -> Any:
            path = tmp_path / "page.html"
            REPORTS.write(trends_of(paths), path)
            page = open_file(path, fragment, **options)
            page.wait_for_selector("body[data-ready]")
            return page

        yield open_curves


def titles(page: Any, box: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(f"{box} figure:visible b").all_inner_texts()]


def values_at(page: Any, chart: int, share: float) -> str:
    """What the page says where this share of a chart's width is pointed at."""
    plot = page.locator("#training .plot").nth(chart)
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
    return str(page.locator("#training .values").nth(chart).inner_text())


def test_what_a_reader_does(open_page: Open, tmp_path: Path) -> None:
    page = open_page(watched(tmp_path / "a.h5", nan_from=7), viewport={"width": 1280, "height": 900})
    assert titles(page, "#training") == ["Loss", "Gradient norm", "Seconds per step"]
    assert values_at(page, 0, 0.999).split("\n") == ["Step 20", "a.h5: 0.05"]
    page.keyboard.press("Escape")

    page.fill(".filters input", "second")
    assert page.locator(".modules tbody tr").count() == 1
    assert "1 of 4 modules" in page.inner_text("#shown")
    page.click("#clear")
    page.click(".remarks button")  # the module in which NaN begins
    assert page.locator("#chosen .chip").all_inner_texts() == ["Net ✕", "Net: body.second ✕"]
    page.click("#chosen .chip >> nth=0")
    assert titles(page, "#modules-drawn") == [
        "Outputs: root mean square", "Gradients: norm", "Parameters: norm", "Updates ÷ parameters: ratio of root mean squares",
    ]  # fmt: skip
    assert (
        page.locator("#modules-drawn .bad").count() == 1
        and page.locator("#training .event.first").count() == 2
    )
    page.select_option("#figure", "nans")
    assert "Outputs: Number of NaN" in titles(page, "#modules-drawn")
    page.select_option("#scale", "logarithmic")
    assert "Logarithmic scale." in page.inner_text("#training")
    assert "figure=nans" in page.url and "m=Net" in page.url
    again = open_page(tmp_path / "a.h5", fragment="#" + page.url.partition("#")[2])
    assert again.locator("#chosen .chip").all_inner_texts() == ["Net: body.second ✕"]
    assert again.input_value("#figure") == "nans" and again.input_value("#scale") == "logarithmic"


def test_two_runs_and_their_difference(open_page: Open, tmp_path: Path) -> None:
    mine = watched(tmp_path / "mine.h5", loss=lambda step: 1 / step * (1 + 10.0**-step))
    page = open_page(mine, watched(tmp_path / "golden.h5", range(2, 21, 2)))
    assert titles(page, "#training") == ["Loss", "Difference", "Gradient norm", "Seconds per step"]
    assert values_at(page, 0, 0.999).split("\n")[1:] == ["golden: 0.05", "mine: 0.05"]
    ticks = page.locator("#training svg.plot >> nth=1 >> text:not(.across)").all_text_contents()
    assert ticks[-5:] == ["1e-14", "1e-11", "1e-8", "1e-5", "0.01"]
    assert "Equal at all common steps." in page.inner_text("#training")
    page.click("[data-language=zh-CN]")
    assert titles(page, "#training")[:2] == ["损失", "相对差异"]


def test_jumps_and_a_loss_that_is_nan(open_page: Open, tmp_path: Path) -> None:
    def loss(step: int) -> float:
        return math.nan if step == 35 else 9.0 if step == 30 else 1 + step % 2 / 10

    page = open_page(watched(tmp_path / "a.h5", range(1, 41), loss=loss))
    assert page.locator("#training figure >> nth=0 >> .event.spike").count() == 1
    assert "not finite: 1" in values_at(page, 0, 0.055 + 0.93 * 34 / 39)
    assert "A cross at the top edge: NaN or Inf." in page.inner_text("#training")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_its_window(open_page: Open, tmp_path: Path, width: int, scheme: str) -> None:
    long = ".".join(["a_module_with_a_long_name"] * 8)
    paths = [
        watched(tmp_path / name, modules=(long, "x")) for name in ("a_rather_long_name_of_a_file.h5", "b.h5")
    ]
    page = open_page(
        *paths,
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        fragment=f"#m=Net: {long}&m=Net: x",
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("[data-language=zh-CN]")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_names_are_text(open_page: Open, tmp_path: Path) -> None:
    name = "</script><img src=x onerror=alert(1)>"
    page = open_page(
        watched(tmp_path / "<b>.h5", modules=(name, "x")), fragment="#m=<script>alert(1)</script>"
    )
    assert name in page.inner_text(".modules") and page.inner_text("h1") == "<b>.h5"
    assert page.locator("img").count() == 0


# While the run goes on.


def _more(file: WatchedFile, steps: range) -> None:
    for step in steps:
        file.put(step, rows.LOSS, None, "output_0", 1.0 / step)
        for module in ("first", "second"):
            file.put(step, rows.MODULE, module, "output_0", 1.0)
        file.end_step(step)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[WatchedFile, LivePage]]:
    """A run of three steps that goes on, and its page."""
    monkeypatch.setattr(live, "SECONDS", 0.2)
    file = WatchedFile(tmp_path / "run.h5")
    _more(file, range(1, 4))
    page = LivePage(tmp_path / "live.html", [tmp_path / "run.h5"], Options())
    assert page.write()
    yield file, page
    file.writer.close()


def test_an_open_page_follows_the_run(browser: Any, running: tuple[WatchedFile, LivePage]) -> None:
    file, written = running
    with quiet_pages(browser) as open_file:
        page = open_file(written.page)
        page.wait_for_selector("body[data-ready]")
        assert "The program is running; the page updates itself." in page.inner_text("#state")
        page.check(".modules tbody tr >> nth=1 >> input")
        page.evaluate("window.isTheSame = true")
        _more(file, range(4, 9))
        written.write()
        page.wait_for_selector(".card :text('8 steps, 1 to 8')")
        assert values_at(page, 0, 0.999).split("\n")[0] == "Step 8"
        assert page.evaluate("window.isTheSame") is True  # it was not loaded anew
        assert page.locator("#chosen .chip").all_inner_texts() == ["Net: first ✕", "Net: second ✕"]
        file.writer.close()
        written.write(is_last=True)
        page.wait_for_selector("#state:empty", state="attached")
        assert "ended" in page.inner_text(".card")


def test_a_browser_without_frames_of_files_loads_the_page_anew(
    browser: Any, running: tuple[WatchedFile, LivePage]
) -> None:
    file, written = running
    page = browser.new_page()
    page.route(re.compile(r"\?\d+"), lambda route: route.abort())
    page.goto(written.page.as_uri())
    page.wait_for_selector("body[data-ready]")
    page.select_option("#scale", "logarithmic")
    _more(file, range(4, 9))
    written.write()
    page.wait_for_selector(".card :text('8 steps, 1 to 8')")
    page.wait_for_selector("body[data-ready]")
    assert page.input_value("#scale") == "logarithmic"
    page.close()
