"""Pieces of HTML: text in both languages of which the page shows one, and everything escaped."""

from __future__ import annotations

import html

from torchferry.report.safe import visible
from torchferry.text import Text


def escaped(text: str) -> str:
    """Text that is text, wherever it came from."""
    return html.escape(visible(text))


def both(text: Text, element: str = "span") -> str:
    """The text in both languages; the style sheet shows the page's. `element` may have attributes."""
    name = element.split()[0]
    if text.en == text.zh:
        return f"<{element}>{escaped(text.en)}</{name}>"
    return (
        f'<{element} lang="en">{escaped(text.en)}</{name}><{element} lang="zh-CN">{escaped(text.zh)}</{name}>'
    )


def row(cells: list[str], cell: str = "td", kind: str = "") -> str:
    """A row of a table; the cells are HTML already."""
    start = f'<tr class="{kind}">' if kind else "<tr>"
    return start + "".join(f"<{cell}>{content}</{cell}>" for content in cells) + "</tr>"


def table(heads: list[Text], rows: list[str], kind: str = "rules") -> str:
    """A table in the look of the other reports."""
    head = row([both(text) for text in heads], "th")
    return f'<div class="scroll"><table class="{kind}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'
