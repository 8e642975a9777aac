"""The frame of pages that are made whole in Python: head, choice of language, overview, sections, footer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from torchferry import __version__
from torchferry.report.html import asset, enclosed, fill, head
from torchferry.report.markup import both, escaped
from torchferry.text import Language, Text

_SKIP = Text("Skip to the content", "跳到正文")
_LANGUAGE = Text("Language", "语言")


class Page(NamedTuple):
    """What one page has of its own; all but the title is HTML already."""

    title: str
    heading: str
    overview: str
    sections: Iterable[str]
    style: str  # added to that of all pages
    script: str


def framed(page: Page, language: Language = "en") -> str:
    """The page; it holds both languages and opens in the one asked for."""
    style = asset("page.css") + asset("languages.css") + page.style
    script = enclosed(asset("languages.js"), page.script)
    parts = {
        "HEAD": head(escaped(f"{page.title} · TorchFerry"), style, script, language),
        "SKIP": both(_SKIP),
        "LANGUAGE_LABEL": escaped(_LANGUAGE.in_language(language)),
        "HEADING": page.heading,
        "OVERVIEW": page.overview,
        "MAIN": "\n".join(page.sections),
        "FOOTER": escaped(f"TorchFerry {__version__}"),
        "SCRIPT": script,
    }
    return fill(asset("frame.html"), parts)
