"""Edits at byte positions of UTF-8 text, and their application."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the bytes [start, end) by `text`; an insertion has start == end."""

    start: int
    end: int
    text: str
    is_line: bool = field(default=False, compare=False)  # may stand before or behind other lines put there


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
    return one.start == one.end == other.start == other.end and not (one.is_line and other.is_line)


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


def edited(data: bytes, start: int, end: int, edits: Iterable[Edit]) -> bytes:
    """The part [start, end) of a text as edits inside of it leave it."""
    moved = [Edit(edit.start - start, edit.end - start, edit.text) for edit in edits]
    return apply_edits(data[start:end], moved)


@dataclass(frozen=True)
class _Piece:
    """A stretch of the present text: bytes [start, end) of the first text, or `written` ones put at `start`."""

    start: int
    end: int
    written: bytes | None = None

    @property
    def length(self) -> int:
        return self.end - self.start if self.written is None else len(self.written)

    def part(self, begin: int, end: int) -> _Piece:
        if self.written is None:
            return _Piece(self.start + begin, self.start + end)
        return _Piece(self.start, self.start, self.written[begin:end])


class Rewriting:
    """A text on its way through several sets of edits; knows where each byte comes from."""

    def __init__(self, data: bytes) -> None:
        self._first = data
        self._pieces = [_Piece(0, len(data))]

    @property
    def data(self) -> bytes:
        """The text as it is now."""
        return b"".join(
            self._first[piece.start : piece.end] if piece.written is None else piece.written
            for piece in self._pieces
        )

    def apply(self, edits: Iterable[Edit]) -> None:
        """Apply edits of the present text that don't overlap."""
        pieces: list[_Piece] = []
        position = 0
        for edit in sorted(set(edits)):
            pieces += self._between(position, edit.start)
            if edit.text:
                place = self.origin(edit.start)
                pieces.append(_Piece(place, place, edit.text.encode("utf-8")))
            position = edit.end
        pieces += self._between(position, sum(piece.length for piece in self._pieces))
        self._pieces = pieces

    def _between(self, start: int, end: int) -> list[_Piece]:
        found: list[_Piece] = []
        position = 0
        for piece in self._pieces:
            first, last = max(start - position, 0), min(end - position, piece.length)
            if first < last:
                found.append(piece.part(first, last))
            position += piece.length
        return found

    def origin(self, position: int) -> int:
        """The byte of the first text that a byte of the present one was, or before which it was written."""
        piece, offset = self._piece_at(position)
        return piece.start + offset if piece.written is None else piece.start

    def is_written(self, position: int) -> bool:
        """Whether a byte of the present text was written by an edit."""
        return self._piece_at(position)[0].written is not None

    def _piece_at(self, position: int) -> tuple[_Piece, int]:
        """The piece that holds a byte of the present text, and where in it; behind the end an empty one."""
        for piece in self._pieces:
            if position < piece.length:
                return piece, position
            position -= piece.length
        return _Piece(len(self._first), len(self._first)), 0

    def edits(self) -> list[Edit]:
        """The edits that lead from the first text to the present one."""
        found: list[Edit] = []
        start, written = 0, b""
        for piece in [*self._pieces, _Piece(len(self._first), len(self._first))]:
            if piece.written is not None:
                written += piece.written
                continue
            if written or piece.start > start:
                found.append(Edit(start, piece.start, written.decode("utf-8")))
            start, written = piece.end, b""
        return found
