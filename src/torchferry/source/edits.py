"""Edits at byte positions of UTF-8 text, and their application."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the bytes [start, end) by `text`; an insertion has start == end."""

    start: int
    end: int
    text: str


class EditSet:
    """Edits that don't overlap."""

    def __init__(self) -> None:
        self._edits: list[Edit] = []  # sorted

    def conflicts(self, edit: Edit) -> bool:
        """Whether an edit touches bytes that another one replaces, or inserts where another one inserts."""
        index = bisect_left(self._edits, edit)
        near = self._edits[max(index - 1, 0) : index + 2]
        return any(edit != other and _overlap(edit, other) for other in near)

    def add(self, edits: Iterable[Edit]) -> None:
        """Take in edits that conflict with none."""
        for edit in edits:
            index = bisect_left(self._edits, edit)
            if index == len(self._edits) or self._edits[index] != edit:
                self._edits.insert(index, edit)


def _overlap(one: Edit, other: Edit) -> bool:
    if one.start < other.end and other.start < one.end:
        return True
    return one.start == one.end == other.start == other.end


def apply_edits(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Apply edits that don't overlap; equal ones count once."""
    pieces: list[bytes] = []
    position = 0
    for edit in sorted(set(edits)):
        if edit.start < position:
            raise ValueError(f"edits overlap at byte {edit.start}")
        pieces.append(data[position : edit.start])
        pieces.append(edit.text.encode("utf-8"))
        position = edit.end
    pieces.append(data[position:])
    return b"".join(pieces)
