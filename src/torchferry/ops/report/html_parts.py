"""Pieces of the page that several of its sections use: badges of support, cells of the heat map, links to lines."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry.ops.model import Use
from torchferry.ops.readiness import Support
from torchferry.ops.report import sentences, words
from torchferry.ops.report.modules import Tally
from torchferry.report.markup import both, escaped
from torchferry.report.safe import one_line
from torchferry.text import Text

TONES = {
    Support.KERNEL: "change",
    Support.STRUCTURED: "change",
    Support.COMPOSITE: "change",
    Support.LIMITED: "risk",
    Support.UNKNOWN: "unknown",
    Support.FALLBACK: "todo",
    Support.MISSING: "unsupported",
}  # the colours of the other reports
SIGNS = {Support.LIMITED: "!", Support.UNKNOWN: "?", Support.FALLBACK: "↩", Support.MISSING: "✕"}
_HEAT = ((0.99, "h4"), (0.95, "h3"), (0.8, "h2"), (0.5, "h1"), (0.0, "h0"))

Anchors = Mapping[str, str]  # a line of code, or an operator -> the id of what shows it


def badge(support: Support | None) -> str:
    """The support in words, with a sign that does not need the colour."""
    if support is None:
        return f'<span class="quiet">{words.ABSENT}</span>'
    sign = SIGNS.get(support, "✓")
    return f'<span class="badge {TONES[support]}"><i aria-hidden="true">{sign}</i>{both(words.SUPPORT[support])}</span>'


def heat(tally: Tally) -> str:
    """The share that a device computes, coloured; with the sign of the worst that lies below."""
    if tally.support is None:
        return '<span class="cell"></span>'
    share = sentences.percent(tally.share, tally.is_all)
    if tally.is_all:
        return f'<span class="cell full">{share}</span>'
    level = next(name for least, name in _HEAT if tally.share >= least)
    tone = "dark" if tally.support is Support.UNKNOWN else level
    if tally.support is Support.UNKNOWN and not tally.ready_calls:
        share = ""
    said = f'<span class="hush">{both(words.SUPPORT[tally.support])}</span>'
    return f'<span class="cell {tone}">{share} <i aria-hidden="true">{SIGNS[tally.support]}</i>{said}</span>'


def place_link(use: Use, anchors: Anchors) -> str:
    """The line of code, as a link to where the page shows it."""
    place = f"<code>{escaped(sentences.place(use))}</code>"
    target = anchors.get(use.site.place)
    return f'<a href="#{target}">{place}</a>' if target else place


def operator_link(operator: str, anchors: Anchors) -> str:
    """An operator's name, as a link to its row."""
    return f'<a href="#{anchors[operator]}"><code>{escaped(one_line(operator))}</code></a>'


def quiet(text: Text) -> str:
    """A paragraph that stays in the background."""
    return both(text, 'p class="quiet"')
