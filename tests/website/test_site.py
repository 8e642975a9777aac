"""The whole site, built: nothing in it comes from elsewhere, and every link leads somewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.website.built import NEEDS_MKDOCS

ROOT = Path(__file__).parents[2]
pytestmark = NEEDS_MKDOCS
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class _Links(HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if (
            (name := _LOADED.get(tag))
            and name in given
            and given.get("rel") not in ("alternate", "canonical")
        ):
            self.loaded.append(given[name])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Links]:
    return {page: _Links(page.read_text("utf-8")) for page in sorted(site.rglob("*.html"))}


def test_no_page_loads_anything_from_another_host(site: Path, pages: dict[Path, _Links]) -> None:
    assert len(pages) > 300
    elsewhere = re.compile(r"(?:[a-z]+:)?//")
    assert [
        (page, url) for page, found in pages.items() for url in found.loaded if elsewhere.match(url)
    ] == []
    styles = [style.read_text("utf-8") for style in site.rglob("*.css")]
    assert styles and not any(re.search(r"url\([\"']?(?:https?:)?//|@import", style) for style in styles)


def test_every_link_leads_to_a_page_and_a_heading(site: Path, pages: dict[Path, _Links]) -> None:
    wrong = []
    for page, found in pages.items():
        for link in found.links:
            address, anchor = urldefrag(unquote(link))
            if address.startswith(("https://", "http://", "mailto:")) or page.name == "404.html":
                continue
            target = (page.parent / address).resolve() if address else page
            if not target.is_file() or (
                anchor and target.suffix == ".html" and anchor not in pages[target].anchors
            ):
                wrong.append((page.relative_to(site).as_posix(), link))
    assert wrong == []


def test_both_languages_have_the_same_pages(site: Path) -> None:
    english, chinese = (
        {page.relative_to(site / code) for page in (site / code).rglob("*.html")} for code in ("en", "zh")
    )
    assert english == chinese


def test_no_page_names_this_machine(pages: dict[Path, _Links]) -> None:
    assert not [page for page in pages if str(ROOT) in page.read_text("utf-8")]


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.website import building, staging

    written = staging.written_pages
    monkeypatch.setattr(staging, "_MAKERS", ())
    monkeypatch.setattr(
        staging,
        "written_pages",
        lambda language: {**written(language), "index.md": "# A\n\n[b](tutorial.md#gone)\n"},
    )
    with pytest.raises(building.FerryError, match="gone"):
        building.build(tmp_path / "site")
    assert not (tmp_path / "site").exists()
