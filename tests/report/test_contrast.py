"""Colours of pages: text of both themes can be read by WCAG's measure (AA: 4.5 for text, 3 for lines of charts)."""

from __future__ import annotations

import re

import pytest

from torchferry.report.html import asset

TEXT, DRAWN = 4.5, 3.0
GROUNDS = ("paper", "panel")
WORDS = (
    "ink",
    "quiet",
    "accent",
    "change",
    "todo",
    "unsupported",
    "unknown",
    "risk",
    "info",
    "pink",
    "teal",
    "orange",
    "olive",
)
ON_MARKS = ("old", "old-mark", "new", "new-mark", "target")  # code in diffs, the line that was jumped to
TINT = 0.16  # of a tone behind its own word, at most, as in the rows of trees


def palette(theme: str) -> dict[str, tuple[float, ...]]:
    found = re.findall(r"--([\w-]+): #([0-9a-f]{6});", asset(f"{theme}.css"))
    return {name: tuple(int(value[at : at + 2], 16) / 255 for at in (0, 2, 4)) for name, value in found}


def luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def mixed(tone: tuple[float, ...], ground: tuple[float, ...], share: float) -> tuple[float, ...]:
    return tuple(share * a + (1 - share) * b for a, b in zip(tone, ground, strict=True))


def test_the_measure_is_the_one_of_wcag() -> None:
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast((0x77 / 255,) * 3, (1, 1, 1)) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_word_can_be_read_on_every_ground(theme: str) -> None:
    colours = palette(theme)
    weak = {
        f"{word} on {ground}": round(contrast(colours[word], colours[ground]), 2)
        for word in WORDS
        for ground in GROUNDS
        if contrast(colours[word], colours[ground]) < TEXT
    }
    weak |= {
        f"ink on {mark}": round(contrast(colours["ink"], colours[mark]), 2)
        for mark in ON_MARKS
        if contrast(colours["ink"], colours[mark]) < TEXT
    }
    assert weak == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_name_the_same_colours(theme: str) -> None:
    assert palette(theme).keys() == palette("light").keys() >= {*WORDS, *GROUNDS, *ON_MARKS, "line"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_ink_can_be_read_on_a_tinted_row(theme: str) -> None:
    colours = palette(theme)
    for word in WORDS:
        row = mixed(colours[word], colours["paper"], TINT)
        assert contrast(colours["ink"], row) >= TEXT, word
        assert contrast(colours[word], row) >= DRAWN, word
