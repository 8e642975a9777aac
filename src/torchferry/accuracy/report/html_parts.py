"""Pieces of the page that several of its sections use: badges, small paragraphs, the colours of verdicts."""

from __future__ import annotations

from torchferry.accuracy.compare.model import Verdict
from torchferry.accuracy.report import words
from torchferry.report.markup import both
from torchferry.text import Text

TONES = {
    Verdict.EQUAL: "change",
    Verdict.NORMAL: "change",
    Verdict.INHERITED: "info",
    Verdict.REDUCED: "risk",
    Verdict.UNKNOWN: "unknown",
    Verdict.UNEXPLAINED: "unknown",
    Verdict.SUSPICIOUS: "todo",
    Verdict.FAULT: "unsupported",
    Verdict.PROGRAM: "unsupported",
}  # the colours of the other reports
SIGNS = {
    Verdict.EQUAL: "=",
    Verdict.NORMAL: "✓",
    Verdict.INHERITED: "↓",
    Verdict.REDUCED: "≈",
    Verdict.UNKNOWN: "?",
    Verdict.UNEXPLAINED: "¿",
    Verdict.SUSPICIOUS: "!",
    Verdict.FAULT: "✕",
    Verdict.PROGRAM: "≠",
}


def badge(verdict: Verdict) -> str:
    """The verdict in words, with a sign that does not need the colour."""
    return (
        f'<span class="badge {TONES[verdict]}"><i aria-hidden="true">{SIGNS[verdict]}</i>'
        f"{both(words.VERDICT[verdict])}</span>"
    )


def quiet(text: Text) -> str:
    """A paragraph that stays in the background."""
    return both(text, 'p class="quiet"')
