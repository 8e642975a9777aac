"""The tokens inside a string expression: prefixes, quotes, literal text and replacement fields with their positions.

`ast` gives one node, and inside f-strings no usable positions, for what may be several string tokens. Editing the
text of a string needs the exact bytes, so they are found here by reading the tokens of one expression again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENING = re.compile(rb"([A-Za-z]{0,3})('''|\"\"\"|'|\")")
_BETWEEN = re.compile(rb"(?:[ \t\f\r\n()]|\\(?:\r\n|\r|\n)|#[^\r\n]*)+")
_NAMED_CHARACTER = re.compile(rb"\\N\{[^}]*\}")


class LiteralError(ValueError):
    """The bytes are not a sequence of string tokens."""


@dataclass(frozen=True)
class LiteralText:
    """A stretch of literal text between quotes and replacement fields; positions are bytes of the module."""

    start: int
    end: int
    raw: bytes  # as written, escapes not interpreted


@dataclass(frozen=True)
class LiteralToken:
    """One string token."""

    start: int
    end: int
    prefix: str  # lower case
    quote: str
    texts: tuple[LiteralText, ...]
    fields: int  # how many replacement fields

    @property
    def is_f_string(self) -> bool:
        return "f" in self.prefix or "t" in self.prefix


def string_tokens(data: bytes, start: int, end: int) -> list[LiteralToken]:
    """The string tokens of the expression at [start, end)."""
    tokens: list[LiteralToken] = []
    position = start
    while position < end:
        gap = _BETWEEN.match(data, position, end)
        if gap:
            position = gap.end()
            continue
        token = _read_token(data, position)
        tokens.append(token)
        position = token.end
    return tokens


def _read_token(data: bytes, start: int) -> LiteralToken:
    opening = _OPENING.match(data, start)
    if not opening:
        raise LiteralError(f"no string token at byte {start}")
    prefix = opening.group(1).decode("ascii").lower()
    quote = opening.group(2)
    braces = "f" in prefix or "t" in prefix
    texts: list[LiteralText] = []
    fields = 0
    text_start = position = opening.end()
    while True:
        if data.startswith(quote, position):
            texts.append(LiteralText(text_start, position, data[text_start:position]))
            return LiteralToken(
                start, position + len(quote), prefix, quote.decode("ascii"), tuple(texts), fields
            )
        character = data[position : position + 1]
        if not character:
            raise LiteralError("string is not closed")
        if character == b"\\":
            position = _end_of_escape(data, position, braces, is_raw="r" in prefix)
        elif braces and data[position : position + 2] in (b"{{", b"}}"):
            position += 2
        elif braces and character == b"{":
            texts.append(LiteralText(text_start, position, data[text_start:position]))
            fields += 1
            text_start = position = _end_of_field(data, position)
        else:
            position += 1


def _end_of_escape(data: bytes, start: int, braces: bool, is_raw: bool) -> int:
    """The position after a backslash and what it belongs to."""
    following = data[start + 1 : start + 2]
    if braces and is_raw and following in b"{}":
        return start + 1  # in a raw f-string a backslash hides no field
    named = _NAMED_CHARACTER.match(data, start) if braces and not is_raw else None
    return named.end() if named else start + 2


def _end_of_field(data: bytes, start: int) -> int:
    """The position after the brace that closes the replacement field opening at `start`."""
    depth = 0
    position = start
    while position < len(data):
        character = data[position : position + 1]
        if character in b"{[(":
            depth += 1
        elif character in b"}])":
            depth -= 1
            if depth == 0:
                return position + 1
        elif character in b"'\"":
            position = _read_token(data, position).end  # its prefix does not matter for finding the end
            continue
        elif character == b"#" and _begins_comment(data, start, position):
            while data[position : position + 1] not in (b"\r", b"\n", b""):
                position += 1
            continue
        position += 1
    raise LiteralError("replacement field is not closed")


def _begins_comment(data: bytes, field: int, position: int) -> bool:
    """Whether a # in a field is a comment (Python 3.12) rather than a format: then the field goes on below."""
    line = re.search(rb"[\r\n]", data[position:])
    return line is not None and b":" not in data[field:position]
