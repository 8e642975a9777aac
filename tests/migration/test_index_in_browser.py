"""The page of a migration folder in a real browser: every kind of report in one file, no two of which disturb each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from torchferry.errors import InputError
from torchferry.migration.folder import open_or_make
from torchferry.migration.index import write_index
from torchferry.migration.ticks import keep_ticks

from .making import a_bit_of_everything

pytestmark = NEEDS_BROWSER
STAGES = ("plan", "changes", "operators", "proof", "accuracy", "speed", "machine")
_DOUBLE_IDS = "() => [...document.querySelectorAll('[id]')].map((each) => each.id).filter((id, at, all) => all.indexOf(id) !== at)"
_TOO_WIDE = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(a_bit_of_everything(tmp_path_factory.mktemp("migration")), "en")


@pytest.fixture
def open_index(browser: Any, index: Path) -> Iterator[Open]:
    with quiet_pages(browser) as open_file:
        yield lambda fragment="", **options: open_file(index, fragment, **options)


def open_stage(page: Any, stage: str) -> None:
    page.click(f"[data-stage={stage}]")
    page.wait_for_selector(f"[data-panel={stage}]:not([hidden])")


def test_the_overview_has_a_light_for_each_stage(open_index: Open) -> None:
    page = open_index()
    names = page.locator(".stage-line h2 a").all_inner_texts()
    assert names == ["Plan", "Changes", "Operators", "Proof", "Accuracy", "Speed", "Machine"]
    assert page.locator(".stage-line").nth(3).inner_text().count("ferry prove --to ascend main.py") == 1
    assert (
        page.locator("[data-report]").count() == 1
    )  # the index itself: no report is there before its tab is opened


def test_every_report_is_there_in_full_and_works(open_index: Open) -> None:
    page = open_index()
    for stage in STAGES:
        open_stage(page, stage)
        assert page.evaluate(_DOUBLE_IDS) == []
    assert page.locator("[data-panel=operators] .operators tbody").count() > 1
    assert page.locator("[data-panel=proof] figure").count() >= 2
    open_stage(page, "accuracy")
    rows = page.locator("[data-panel=accuracy] table.calls tbody tr").count()
    page.fill("[data-panel=accuracy] input[type=search]", "no operator has this name")
    page.wait_for_function("() => !document.querySelector('[data-panel=accuracy] table.calls tbody tr')")
    assert rows > 0


def test_a_tab_has_an_address(open_index: Open) -> None:
    page = open_index("#proof")
    page.wait_for_selector("[data-panel=proof]:not([hidden]) figure")
    assert page.get_attribute("[data-stage=proof]", "aria-current") == "page"


def test_both_languages(open_index: Open) -> None:
    page = open_index()
    page.click("[data-language=zh-CN]")
    assert page.locator(".stage-line h2 a").all_inner_texts()[:2] == ["计划", "改动"]
    open_stage(page, "machine")
    assert "个" in page.inner_text("[data-panel=machine]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_page(open_index: Open, width: int, scheme: str) -> None:
    page = open_index(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for stage in ("overview", *STAGES, "history"):
        open_stage(page, stage)
        assert page.evaluate(_TOO_WIDE) <= 0, stage


def test_the_history_leads_to_the_reports(open_index: Open) -> None:
    page = open_index("#history")
    page.wait_for_selector("[data-panel=history]:not([hidden])")
    assert page.locator(".history tbody tr").count() == 9
    page.locator(".history a[href='#speed']").click()
    page.wait_for_selector("[data-panel=speed]:not([hidden])")


def test_ticks_are_kept_in_the_folder(browser: Any, tmp_path: Path) -> None:
    folder = a_bit_of_everything(tmp_path)
    with quiet_pages(browser) as open_file:
        page = open_file(write_index(folder, "en"), "#plan")
        page.locator("[data-panel=plan] .tick:visible").first.check()
        with page.expect_download() as download:
            page.locator("[data-panel=plan] [id$=export]").click()
        download.value.save_as(tmp_path / "ticks.json")
    (kept,) = keep_ticks(folder, tmp_path / "ticks.json")
    with quiet_pages(browser) as open_file:
        page = open_file(write_index(folder, "en"), "#plan")
        page.wait_for_selector("[data-panel=plan] .tick:checked")
        assert page.locator("[data-panel=plan] .tick:checked").get_attribute("data-tick") == kept


def test_a_file_without_ticks(tmp_path: Path) -> None:
    (tmp_path / "ticks.json").write_text("{}")
    with pytest.raises(InputError, match="not a file of ticks; export one with the button"):
        keep_ticks(open_or_make(tmp_path / "toy"), tmp_path / "ticks.json")
