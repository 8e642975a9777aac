"""Text taken from a user's project, made safe to show: no surrogates, no control characters, no live formulas."""

from __future__ import annotations

import re
from collections.abc import Callable

from torchferry.text import Text

_SURROGATE = re.compile("[\ud800-\udfff]")
# Control characters, line separators and the bidirectional controls that make code read other than it runs.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_HIDDEN_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """The text with every lone surrogate written out, so that it can be encoded; a raw byte becomes \\xff."""
    return _SURROGATE.sub(_escape, text)


def in_both_languages(text: Text) -> dict[str, str]:
    """A text as every JSON of ours has it."""
    return {"en": printable(text.en), "zh": printable(text.zh)}


def one_line(text: str) -> str:
    """The text on one line with every invisible character written out."""
    return _HIDDEN.sub(_escape, printable(text))


def both_on_one_line(text: Text) -> Text:
    """`one_line` of a text in both languages."""
    return Text(one_line(text.en), one_line(text.zh))


def visible(text: str) -> str:
    """The text with its lines and tabs, and every other invisible character written out."""
    return _HIDDEN_IN_LINES.sub(_escape, printable(text))


def shortened(text: str, width: int) -> str:
    """One line of at most this many characters."""
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def with_code(text: str, escape: Callable[[str], str], code: Callable[[str], str]) -> str:
    """Text of which the pieces between backticks are code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # a backtick of someone else's
        return escape(text)
    return "".join((code if at % 2 else escape)(piece) for at, piece in enumerate(pieces))


def xml_text(text: str) -> str:
    """The text without the characters that XML, and so a spreadsheet, can't hold."""
    return _NOT_XML.sub("", printable(text))


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet might take this cell for a formula."""
    return text.startswith(("=", "+", "-", "@", "\t", "\r"))


def web_address(url: str) -> str:
    """The address if it is an ordinary web address, else nothing: no other scheme may become a link."""
    return url if re.fullmatch(r"https?://[!-~]+", url) else ""


def path_bytes(path: str) -> bytes:
    """The path as the bytes it had on disk."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
