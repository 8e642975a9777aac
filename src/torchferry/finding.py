"""The one record that every stage reports in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchferry.text import Text


class Kind(str, Enum):
    """What a finding asks of the user."""

    CHANGE = "change"  # done for you
    TODO = "todo"  # you must decide; the message says what and why
    UNSUPPORTED = "unsupported"  # the vendor does not have it
    UNKNOWN = "unknown"  # nothing public says whether the vendor has it
    RISK = "risk"  # works, but accuracy or speed may differ
    INFO = "info"  # left as it is, with the reason


@dataclass(frozen=True)
class Finding:
    """One thing learned about one place in the user's project."""

    rule: str
    kind: Kind
    path: str  # relative to the project, with forward slashes
    line: int  # 1-based
    col: int  # 1-based, in characters
    before: str
    after: str
    message: Text
    vendor: str
    url: str = ""
