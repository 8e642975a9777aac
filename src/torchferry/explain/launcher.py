"""What torchrun says at its end about the rank that failed first."""

from __future__ import annotations

import re

from torchferry.explain.model import Launched

_HEAD = "Root Cause (first observed failure)"
_LINES = 10  # that follow it
_FIELD = re.compile(r"^\s*(time|rank|exitcode)\s*:\s*(-?[\w:.+-]+)")


class LauncherSummary:
    """Reads the summary line by line."""

    def __init__(self) -> None:
        self._left = 0
        self._fields: dict[str, str] = {}

    @property
    def wants_more(self) -> bool:
        return self._left > 0

    def feed(self, text: str) -> None:
        """Look at the next line."""
        if _HEAD in text and not self._fields:
            self._left = _LINES
        elif self._left:
            self._left -= 1
            match = _FIELD.match(text)
            if match:
                self._fields.setdefault(match[1], match[2])

    def result(self) -> Launched | None:
        """None if there is no such summary."""
        rank = self._fields.get("rank", "")
        if not rank.isdecimal():
            return None
        code = self._fields.get("exitcode", "")
        return Launched(
            int(rank), int(code) if re.fullmatch(r"-?\d+", code) else None, self._fields.get("time", "")
        )
