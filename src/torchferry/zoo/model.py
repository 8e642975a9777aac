"""What a check of a delivery finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchferry.text import Text


class Status(Enum):
    """The verdict on one thing, the worst first."""

    MISSING = "missing"  # the zoo's guide asks for it, or what is there is wrong
    DOUBT = "doubt"  # a reviewer will ask
    RECOMMENDED = "recommended"  # the guide does not ask for it, most models of the zoo have it
    NOTE = "note"
    FINE = "fine"


@dataclass(frozen=True)
class Item:
    """What one check says about one thing."""

    id: str  # of the check
    subject: str  # a file, a section, a requirement
    status: Status
    found: Text
    why: Text = Text("", "")  # what is asked for, and how to get there
    place: str = ""  # train.py:57
