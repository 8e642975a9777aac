"""What holds for the page of every kind of report, in a real browser."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import NEEDS_BROWSER, quiet_pages
from torchferry.report.formats import Options
from torchferry.text import Language

from .every_page import EVERY_PAGE

pytestmark = NEEDS_BROWSER
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
Shown = Callable[..., Any]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Shown]:
    """Opens the page of a kind; whatever it writes to the console is a failure."""
    with quiet_pages(browser) as open_file:

        def shown(name: str, language: Language = "en", **options: Any) -> Any:
            page = tmp_path / f"{name}-{language}.html"
            if not page.exists():
                folder = tmp_path / language
                folder.mkdir()
                page.write_bytes(EVERY_PAGE[name](folder, Options(language)))
            return open_file(page, **options)

        yield shown


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_nothing_sticks_out_and_nothing_is_private(show: Shown, name: str, tmp_path: Path) -> None:
    for viewport in (PHONE, DESK):
        page = show(name, viewport=viewport)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.wait_for_timeout(50)  # tables that were hidden are measured
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    text = (tmp_path / f"{name}-en.html").read_text()
    assert str(tmp_path) not in text and str(Path.cwd()) + "/" not in text
    assert not re.search(rf"(?<![\w.-]){re.escape(socket.gethostname())}(?![\w-])", page.inner_text("h1"))


def test_the_theme_is_remembered(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(EVERY_PAGE["compare"](tmp_path, Options()))
    reader = browser.new_context(color_scheme="light")
    page = reader.new_page()
    page.goto(path.as_uri())

    def ground(page: Any) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert ground(page) == "rgb(255, 255, 255)"
    page.click("[data-choose-theme=dark]")
    assert ground(page) == "rgb(19, 23, 30)"
    again = reader.new_page()
    again.goto(path.as_uri())
    assert ground(again) == "rgb(19, 23, 30)"
    assert again.get_attribute("[data-choose-theme=dark]", "aria-pressed") == "true"
    again.click("[data-choose-theme=system]")
    assert ground(again) == "rgb(255, 255, 255)"
    reader.close()


def test_keys(show: Shown) -> None:
    page = show("analyze", viewport=DESK)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "finding-1"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == "finding-2"
    page.keyboard.press("/")
    page.keyboard.type("jk")  # in a field these are letters
    assert page.evaluate("document.activeElement.value") == "jk"
    page.focus("h1 >> xpath=ancestor::header//button >> nth=0")
    page.keyboard.press("?")
    assert page.is_visible("dialog") and "Next and previous item" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    assert not page.is_visible("dialog")


def test_commands_are_copied(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(EVERY_PAGE["compare"](tmp_path, Options()))
    reader = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = reader.new_page()
    page.goto(path.as_uri())
    page.click(".card .copied:has-text('ferry case') .copy")
    page.wait_for_selector(".copy:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()").startswith("ferry case aten::relu --from npu.h5")
    reader.close()


def test_a_wide_table_says_so_and_a_head_stays_in_sight(show: Shown) -> None:
    phone = show("ops", viewport=PHONE)
    assert phone.locator(".sideways:visible").count() >= 1
    first = phone.locator(".operators tbody th").first
    before = first.bounding_box()["x"]
    phone.evaluate("document.querySelector('.scroll:has(.operators)').scrollLeft = 200")
    assert first.bounding_box()["x"] == pytest.approx(before, abs=2)  # which operator it is stays in sight
    desk = show("ops", viewport={"width": 1280, "height": 300})
    assert desk.locator(".scroll:has(.operators).fits").count() == 1
    desk.locator(".operators > tbody").last.scroll_into_view_if_needed()
    assert desk.locator(".operators thead th").first.bounding_box()["y"] >= 0


@pytest.mark.parametrize("name", ["doctor", "zoo"])
def test_what_needs_attention_comes_first_and_the_rest_is_folded(show: Shown, name: str) -> None:
    page = show(name)
    folded = page.locator(".calm")
    assert "need" in folded.first.inner_text() and folded.locator("tbody tr >> visible=true").count() == 0
    folded.first.locator("summary").click()
    assert folded.locator("tbody tr >> visible=true").count() > 3


def test_a_part_of_a_chart_is_looked_at_closely(show: Shown) -> None:
    page = show("proof", viewport=DESK)
    plot = page.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60)
    page.mouse.up()
    labels = plot.locator("text:not(.across)").all_text_contents()
    assert "20" not in labels and page.locator(".whole:visible").count() == 1
    page.click(".whole:visible")
    assert "20" in plot.locator("text:not(.across)").all_text_contents()


def test_a_bar_of_the_timeline_is_found_by_its_name(show: Shown) -> None:
    page = show("analyze", viewport=DESK)
    page.fill("#bars", "mat")
    page.keyboard.press("Enter")
    assert "MatMulV2" in page.inner_text("#bar") and page.inner_text("#found") == "1 / 1"
