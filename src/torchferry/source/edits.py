"""Edits at byte positions of UTF-8 text, and their application."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the bytes [start, end) by `text`; an insertion has start == end."""

    start: int
    end: int
    text: str


def conflicts(edit: Edit, accepted: Iterable[Edit]) -> bool:
    """Whether an edit touches bytes that another one replaces, or inserts where another one inserts."""
    for other in accepted:
        if edit == other:
            continue
        if edit.start < other.end and other.start < edit.end:
            return True
        if edit.start == edit.end == other.start == other.end:
            return True
    return False


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
