"""The HTML page in a real browser: filters, search, diff, languages, and no request to anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from torchferry.finding import Kind
from torchferry.outcome import Report
from torchferry.report.findings import REPORTS
from torchferry.text import Text

from .samples import empty_report, hostile_report, large_report, one_finding, sample_report

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
    """The numbers on the tabs: places that need a person, files."""
    return {
        view: int(page.inner_text(f"[data-view={view}] .count").replace(",", ""))
        for view in ("work", "files")
    }


def search(page: Any, query: str) -> None:
    """Type into the search box and wait until the page has answered: then the address holds the query."""
    page.fill("#query", query)
    page.wait_for_url(lambda url: urlencode({"q": query}) in url)


def test_the_work_list_comes_first_and_says_what_is_left(open_page: Open) -> None:
    page = open_page(sample_report())
    assert page.inner_text("h1") == "resnet-trainer → ascend"
    assert page.inner_text(".headline h2") == (
        "4 blockers, 3 decisions, 6 to check once in 7 files; 46 places done"
    )
    assert page.locator(".group h2").first.inner_text().split() == ["Blockers", "4"]
    assert counts(page) == {"work": 13, "files": 10}


def test_a_cause_shows_why_what_to_do_and_the_line_of_each_place(open_page: Open) -> None:
    report = one_finding(
        kind=Kind.TODO,
        title=Text("`DataParallel` is not supported", "不支持 `DataParallel`"),
        why=Text("It needs one process.", "它需要一个进程。"),
        do=Text("Run `torchrun train.py`.", "请运行 `torchrun train.py`。"),
        source="model = nn.DataParallel(model)",
        effort=90,
        effort_each=30,
        after="",
    )
    page = open_page(report)
    cause = page.inner_text(".cause")
    for said in (
        "DataParallel is not supported",
        "about 2 hours",
        "It needs one process.",
        "Run torchrun train.py.",
    ):
        assert said in cause
    assert page.inner_text(".place-row code") == "model = nn.DataParallel(model)"
    assert page.locator(".cause h3 code").first.inner_text() == "DataParallel"


def test_a_page_with_nothing_to_do_begins_with_the_changes(open_page: Open) -> None:
    done = open_page(one_finding(kind=Kind.CHANGE))
    assert done.locator("#view-files").is_visible() and not done.locator("#view-work").is_visible()
    done.click("[data-view=work]")
    assert "view=work" in done.url
    assert open_page(one_finding(kind=Kind.TODO)).locator("#view-work").is_visible()


def test_ticks_are_kept_and_can_be_exported(open_page: Open) -> None:
    page = open_page(sample_report())
    page.locator(".group.doubt .tick, .group.todo .tick").first.check()
    assert "1 ticked off" in page.inner_text(".cause:has(.done)")
    page.reload()
    assert page.locator(".tick:checked").count() == 1
    with page.expect_download() as download:
        page.click("#export")
    exported = json.loads(Path(download.value.path()).read_text())
    assert [each["path"] for each in exported["ticked"]] == ["legacy/old_eval.py"]
    assert exported["project"] == "resnet-trainer"


def test_filter_by_severity_and_share_the_link(open_page: Open) -> None:
    page = open_page(sample_report())
    page.click("[data-severity=blocker]")
    assert counts(page) == {"work": 4, "files": 3}
    assert "severity=blocker" in page.url
    page.click("[data-severity=decision]")
    assert counts(page)["work"] == 7
    again = open_page(sample_report(), "#" + page.url.split("#")[1])
    assert counts(again)["work"] == 7
    again.click("#clear")
    assert counts(again)["work"] == 13


def test_search_looks_at_code_messages_and_names(open_page: Open) -> None:
    page = open_page(sample_report())
    for query, findings in (
        ("CUDAExtension", 2),
        ("flash_attn", 1),
        ("重写", 4),
        ("meters.py tf501", 2),
        ("zzz", 0),
    ):
        search(page, query)
        page.wait_for_function(
            f"document.querySelector('[data-view=work] .count').textContent === '{findings}'"
        )
    assert page.inner_text("#view-work") == "Nothing matches these filters."


def test_expand_a_diff(open_page: Open) -> None:
    page = open_page(sample_report(), "#view=files")
    assert page.locator("table.diff").count() == 0  # built when opened
    page.click(".file summary:has-text('train.py')")
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
    page.uncheck("label:has-text('Explain') input")
    assert not page.locator("tr[data-line='32'] + tr.notes").is_visible()


def test_files_are_a_tree_or_sorted_by_what_is_left(open_page: Open) -> None:
    page = open_page(sample_report(), "#view=files")
    assert "utils/" in page.locator(".folder").all_inner_texts()
    page.click("text=Sort by most to decide")
    paths = page.locator(".file .path").all_inner_texts()
    assert len(paths) == 10 and paths[0] == "utils/memory.py"
    page.check("label:has-text('Hide trivial') input")
    assert page.locator(".file").count() == 7  # those in which a person has to look at something


def test_from_a_place_to_its_line_and_back(open_page: Open) -> None:
    page = open_page(sample_report())
    page.click("a.place:has-text('eval.py:8:19')")
    page.wait_for_selector("tr.target[data-line='8']")
    page.go_back()
    page.wait_for_selector(".group.unsupported")
    assert counts(page)["work"] == 13


def test_from_a_rule_to_its_findings(open_page: Open) -> None:
    page = open_page(sample_report(), "#view=rules")
    page.click(".rule-entry:has-text('TF501') button:has-text('Show its findings')")
    assert counts(page)["work"] == 3


def test_switch_language(open_page: Open) -> None:
    page = open_page(sample_report(), "#view=files&file=eval.py")
    page.wait_for_selector("table.diff")
    page.click("[data-language=zh-CN]")
    assert page.get_attribute("html", "lang") == "zh-CN"
    page.wait_for_selector("#main :text('目标平台不支持 DataParallel')")  # the file stays open
    page.click("[data-language=en]")
    page.wait_for_selector("#main :text('The target has no DataParallel')")


def test_keyboard(open_page: Open) -> None:
    page = open_page(sample_report())
    page.keyboard.press("j")
    assert page.locator(".cause.current").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("flash_attn")
    page.wait_for_url("**#q=flash_attn")
    page.focus("[data-view=files]")
    page.keyboard.press("Enter")
    page.wait_for_selector("details.file summary")
    page.locator("details.file summary").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".file .body")


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_nothing_sticks_out_of_the_page(open_page: Open, width: int) -> None:
    for fragment in ("", "#view=files&file=eval.py", "#view=rules"):
        page = open_page(sample_report(), fragment, viewport={"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_text_is_text(open_page: Open) -> None:
    page = open_page(hostile_report(), "#view=files")
    page.click("text=Expand")
    page.wait_for_selector("table.diff")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main b, main script:not([type]), main a[href^=javascript]").count() == 0
    assert "\\xff,a:b.py" in page.inner_text("#main")


def test_empty(open_page: Open) -> None:
    page = open_page(empty_report())
    assert "No code in this project uses CUDA" in page.inner_text(".headline")
    assert page.locator("#filters").count() == 0


def test_twenty_thousand_findings(open_page: Open) -> None:
    page = open_page(large_report(20_000))
    assert counts(page)["files"] == 200
    assert page.locator(".item").count() <= 4 * 50
    page.click(".group.todo .places summary >> nth=0")
    assert page.locator(".group.todo .place-row").count() <= 50
    search(page, "module_0033")
    page.wait_for_function("document.querySelector('[data-view=files] .count').textContent === '1'")
