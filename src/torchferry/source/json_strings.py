"""String literals inside JSON text: where each character of the value is written, and literals that say something else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate

# What stands for one character of the value: a pair of surrogates, an escape, or the character itself.
_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
# Lines longer than this (data, rather than code) are replaced between their first and last difference.
_LONGEST_COMPARED = 2000

Replacement = tuple[int, int, str]  # characters [start, end) become the text


@dataclass(frozen=True)
class JsonString:
    """One string literal of a JSON text."""

    start: int  # of the opening quote
    end: int  # behind the closing quote
    raw: str  # what is written between the quotes
    value: str

    @cached_property
    def _units(self) -> list[int]:
        """Where, within `raw`, each character of the value begins; and the end."""
        if "\\" not in self.raw:
            return list(range(len(self.raw) + 1))
        return [0, *accumulate(len(unit) for unit in _UNIT.findall(self.raw))]

    def position(self, index: int) -> int:
        """The position in the JSON text of a character of the value."""
        return self.start + 1 + self._units[index]

    def rewritten(self, replacements: Sequence[Replacement], ascii_only: bool) -> str:
        """What is written between the quotes after replacements in the value; the rest keeps its spelling."""
        pieces: list[str] = []
        done = 0
        for start, end, text in replacements:
            pieces += [self.raw[self._units[done] : self._units[start]], escaped(text, ascii_only)]
            done = end
        return "".join([*pieces, self.raw[self._units[done] :]])


def escaped(text: str, ascii_only: bool) -> str:
    """Text as it is written inside a JSON string."""
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def differences(old: str, new: str) -> list[Replacement]:
    """The characters to replace so that one line becomes another one."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    shorter -= head
    tail = next((index for index in range(shorter) if old[-1 - index] != new[-1 - index]), shorter)
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(before) + len(after) > _LONGEST_COMPARED:
        return [(head, head + len(before), after)]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [(head + a, head + b, after[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
