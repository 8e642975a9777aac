"""The site in Chromium, opened from the disk: search, the switch of languages, the width of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import NEEDS_BROWSER
from tests.website.built import NEEDS_MKDOCS

pytestmark = [*NEEDS_MKDOCS, *NEEDS_BROWSER]


@pytest.fixture
def open_page(site: Path, browser: Any) -> Iterator[Any]:
    """Opens a page of the site from the disk; in the end none may have complained or asked for another host."""
    troubles: list[str] = []

    def open_it(name: str, **options: Any) -> Any:
        page = browser.new_page(**options)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:")) or troubles.append(request.url),
        )
        page.goto((site / name).as_uri())
        return page

    yield open_it
    assert troubles == []


@pytest.mark.parametrize(
    ("name", "words", "found"),
    [
        ("en/index.html", "huber_loss", "huber_loss"),
        ("en/index.html", "ASCEND_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING"),
        ("en/index.html", "mixed precision", "Mixed precision"),
        ("zh/index.html", "混合精度", "混合精度"),
        ("zh/index.html", "算子", "算子"),
        ("zh/index.html", "多卡训练", "多卡"),
        ("zh/index.html", "第一个出错的算子", "算子"),
        ("zh/index.html", "昇腾", "昇腾"),
        ("zh/index.html", "TF105", "TF105"),
    ],
)
def test_the_search_finds_words_of_both_languages(open_page: Any, name: str, words: str, found: str) -> None:
    page = open_page(name)
    page.click("input.md-search__input")
    page.keyboard.type(words)
    page.keyboard.press("End")  # as an input method does, which the search waits for
    page.wait_for_selector(".md-search-result__item")
    assert found in page.inner_text(".md-search-result__list").replace("\u200b", "")
    page.close()


def test_the_switch_of_languages_stays_on_the_page(open_page: Any) -> None:
    page = open_page("en/how-to/convert.html")
    page.hover(".md-select button")
    page.click("a[hreflang=zh]")
    page.wait_for_load_state()
    assert page.url.endswith("/zh/how-to/convert.html")
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    "name",
    ["index", "how-to/convert", "rules/TF102", "vendors/ascend", "commands/convert", "formats/schemas"],
)
@pytest.mark.parametrize("code", ["en", "zh"])
def test_no_page_is_wider_than_the_window(open_page: Any, code: str, name: str, width: int) -> None:
    page = open_page(f"{code}/{name}.html", viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
