"""Lines of help: as wide as the terminal, at most 100 columns, Chinese counted by its width. Imports next to nothing."""

from __future__ import annotations

import os
import re
import sys
import unicodedata

# For type checkers alone: importing it takes longer than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WIDEST = 100
COLUMN = 26  # where explanations begin; what is longer has a line of its own
_NARROWEST = 40
# Neither begins a line.
_CLOSING = "，。；：！？、）」』》”’%…,.;:!?)]}"
_OPENING = "（「『《“‘([{"
_PIECE = re.compile(r"`[^`\s]+`|\s+|[^\s⺀-鿿＀-￯　-〿]+|.", re.DOTALL)


def columns() -> int:
    """As wide as the terminal or COLUMNS, within reason."""
    return max(_NARROWEST, min(WIDEST, _terminal()))


def _terminal() -> int:
    """What COLUMNS says, else the terminal; 80 where there is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns
    except (OSError, ValueError):
        return 80


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most so many columns; Chinese breaks between any two characters that may be parted."""
    lines, line = [], ""
    for piece in _together(text):
        if line and width_of((line + piece).rstrip()) > width:
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.rstrip()]


def _together(text: str) -> Iterator[str]:
    """Pieces that stay on one line: a word, or a Chinese character with the punctuation that belongs to it."""
    held = ""
    for piece in _PIECE.findall(text):
        is_closing = piece[0] in _CLOSING
        if held and not is_closing and held[-1] not in _OPENING:
            yield held
            held = ""
        held += piece
    yield held


def rows(pairs: Iterable[tuple[str, str]], width: int, column: int = COLUMN) -> Iterator[str]:
    """What is explained, and its explanation beside it or below it."""
    for left, right in pairs:
        lines = wrapped(right, width - column)
        if width_of(left) > column - 4:
            yield f"  {left}"
        else:
            yield f"  {left}{' ' * (column - 2 - width_of(left))}{lines.pop(0)}"
        yield from (" " * column + line for line in lines)
