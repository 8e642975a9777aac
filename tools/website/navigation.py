"""The order of the site's pages, from docs/navigation.toml."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from torchferry.text import Language, Text

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NAVIGATION = DOCS / "navigation.toml"
_MADE = "made:"


@dataclass(frozen=True)
class Section:
    """Pages under one title, and sections below it."""

    title: Text
    pages: tuple[str, ...]
    sections: tuple[Section, ...] = ()

    def written(self) -> Iterator[str]:
        """The pages that are files of the repository."""
        yield from (page for page in self.pages if not page.startswith(_MADE))
        for section in self.sections:
            yield from section.written()


@dataclass(frozen=True)
class Navigation:
    """The sections of the site, and titles that are not a page's first heading."""

    sections: tuple[Section, ...]
    titles: dict[str, Text]

    def written(self) -> list[str]:
        """Every page of the repository, in order."""
        return [page for section in self.sections for page in section.written()]

    def title_of(self, page: str) -> Text:
        """The title of a page of the repository."""
        return self.titles.get(page) or Text(_heading(DOCS / "en" / page), _heading(DOCS / "zh" / page))

    def entries(self, made: Iterable[str], language: Language) -> list[dict[str, Any]]:
        """What MkDocs reads as `nav`."""
        names = list(made)
        return [self._entry(section, names, language) for section in self.sections]

    def _entry(self, section: Section, made: list[str], language: Language) -> dict[str, Any]:
        title = section.title.in_language(language)
        pages = [name for page in section.pages for name in _names(page, made)]
        if len(pages) == 1 and not section.sections:
            return {title: pages[0]}
        inside: list[Any] = [self._page(name, language) for name in pages]
        inside += [self._entry(below, made, language) for below in section.sections]
        return {title: inside}

    def _page(self, name: str, language: Language) -> str | dict[str, str]:
        title = self.titles.get(name)
        return {title.in_language(language): name} if title else name


def _heading(file: Path) -> str:
    return file.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _names(page: str, made: list[str]) -> list[str]:
    if not page.startswith(_MADE):
        return [page]
    pattern = page.removeprefix(_MADE)
    if "*" in pattern:
        return [name for name in made if fnmatch(name, pattern) and not name.endswith("/index.md")]
    return [pattern]


def read_navigation(path: Path = NAVIGATION) -> Navigation:
    """The navigation of the repository's docs."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    table = toml.loads(path.read_text("utf-8"))
    titles = {page: Text(title["en"], title["zh"]) for page, title in table.get("titles", {}).items()}
    return Navigation(tuple(map(_section, table["sections"])), titles)


def _section(table: dict[str, Any]) -> Section:
    below = tuple(map(_section, table.get("sections", ())))
    return Section(Text(table["en"], table["zh"]), tuple(table.get("pages", ())), below)
