"""Boxes to tick off and trees of folders, in a real browser: a page of several reports that has both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import NEEDS_BROWSER
from torchferry.report.bodies import PageBody, nested, whole_page
from torchferry.report.html import FOLDERS, TICKS

pytestmark = NEEDS_BROWSER
LIST = (
    '<div data-ticks="project-1"><p data-ticks-done></p><ul>'
    '<li><input type="checkbox" data-tick="a" hidden>first</li><li><input type="checkbox" data-tick="b" hidden>second</li></ul></div>'
)


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Two reports in one page, the second of which is hidden at first."""
    todo = PageBody("todo", "To do", sections=(LIST,), scripts=(TICKS, FOLDERS))
    tabs = f'{nested(todo, "one-")}<div id="later" hidden>{nested(todo, "two-")}</div>'
    path = tmp_path / "index.html"
    path.write_text(whole_page(PageBody("index", "Index", sections=(tabs,)), "en", inside=[todo]))
    reader = browser.new_context()
    shown = reader.new_page()
    shown.goto(path.as_uri())
    yield shown
    reader.close()


def test_boxes_stay_ticked(page: Any) -> None:
    assert page.inner_text("[data-ticks-done] >> nth=0") == "0 / 2"
    page.check("[data-tick=b] >> nth=0")
    assert page.inner_text("[data-ticks-done] >> nth=0") == "1 / 2"
    page.reload()
    assert page.is_checked("[data-tick=b] >> nth=0") and not page.is_checked("[data-tick=a] >> nth=0")
    assert page.locator("li.done").all_inner_texts() == ["second"]
