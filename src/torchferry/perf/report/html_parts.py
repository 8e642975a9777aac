"""Pieces of the page that several of its sections use."""

from __future__ import annotations

from torchferry.report.markup import both, escaped
from torchferry.report.safe import one_line
from torchferry.text import Text


def quiet(text: Text) -> str:
    """A paragraph that stays in the background."""
    return both(text, 'p class="quiet"')


def prose(text: Text, element: str = "span") -> str:
    """Sentences of which the pieces between backticks are code."""
    if "`" not in text.en:
        return both(text, element)
    return "".join(
        f'<{element} lang="{language}">{_with_code(said)}</{element.split()[0]}>'
        for language, said in (("en", text.en), ("zh-CN", text.zh))
    )


def _with_code(text: str) -> str:
    pieces = one_line(text).split("`")
    if len(pieces) % 2 == 0:  # a backtick of someone else's
        return escaped("`".join(pieces))
    return "".join(
        f"<code>{escaped(piece)}</code>" if at % 2 else escaped(piece) for at, piece in enumerate(pieces)
    )
