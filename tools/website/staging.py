"""The Markdown of one language, written and made, in a folder for MkDocs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tools.website import command_pages, rule_pages, schema_pages, vendor_pages
from tools.website.markdown import Site, as_mkdocs
from tools.website.navigation import DOCS, ROOT

from torchferry.text import Language

Pages = dict[str, str]
_MAKERS: tuple[Callable[[Language], Pages], ...] = (
    command_pages.pages,
    rule_pages.pages,
    vendor_pages.pages,
    schema_pages.pages,
)


def written_pages(language: Language) -> Pages:
    """Path -> text of the pages in the repository."""
    folder = DOCS / language
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.md"))
    }


def made_pages(language: Language) -> Pages:
    """Path -> text of the pages that are made while the site is built."""
    return {path: text for make in _MAKERS for path, text in make(language).items()}


def stage(folder: Path, language: Language, base: str = "") -> list[str]:
    """Write the pages of a language and the files beside them into a folder; the names of those that were made."""
    made = made_pages(language)
    pages = {**written_pages(language), **made}
    site = Site(frozenset([*pages, *_copied(folder)]), ROOT, language, base)
    for path, text in pages.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(as_mkdocs(text, path, site), "utf-8")
    return list(made)


def _copied(folder: Path) -> list[str]:
    """Pictures, styles, scripts and schemas; their names."""
    shutil.copytree(DOCS / "site" / "assets", folder / "assets")
    shutil.copytree(DOCS / "schemas", folder / "schemas")
    if (DOCS / "images").is_dir():
        shutil.copytree(DOCS / "images", folder / "images")
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
