"""What the reports share about a verdict: its name, what it means, its tone and its sign, on a terminal as on a page.

Every report has verdicts of its own (an operator is missing, a bottleneck is severe, a check has failed), as an enum beside
its records. How they look is a table of `Grade` by member of that enum, the order of which is the order of reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar

from torchferry.text import Text

Member = TypeVar("Member", bound=Enum)
_PLACE = re.compile(r"(.*):([0-9]{1,9})", re.DOTALL)


class Tone(NamedTuple):
    """How good or bad something is: the colour that all reports give it."""

    kind: str  # the class on pages, see assets/page.css
    style: str  # on a terminal


GOOD = Tone("change", "green")
QUIET = Tone("info", "dim")
RISK = Tone("risk", "blue")
UNCLEAR = Tone("unknown", "magenta")
DOUBT = Tone("todo", "yellow")
BAD = Tone("unsupported", "red")
TONES = (GOOD, QUIET, RISK, UNCLEAR, DOUBT, BAD)


@dataclass(frozen=True)
class Grade:
    """How reports show one verdict."""

    name: Text
    tone: Tone
    sign: str = ""  # says it where colours are not seen
    meaning: Text = Text("", "")
    own_style: str = ""  # on a terminal, where it is not the tone's

    @property
    def kind(self) -> str:
        """The CSS class of the grade."""
        return self.tone.kind

    @property
    def style(self) -> str:
        """The style on a terminal."""
        return self.own_style or self.tone.style


def tone_of(style: str) -> Tone:
    """The tone of a style for terminals: that of `bold red` is BAD."""
    return next((tone for tone in TONES if tone.style in style.split()), QUIET)


def worst(members: Iterable[Member], grades: Mapping[Member, Grade]) -> Member | None:
    """The first of them in the order of the table; None if there are none."""
    found = set(members)
    return next((member for member in grades if member in found), None)


def file_and_line(place: str) -> tuple[str, int]:
    """File and line of train.py:34; line 0 where there is none."""
    match = _PLACE.fullmatch(place)
    return (match[1], int(match[2])) if match else (place, 0)
