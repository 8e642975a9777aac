"""The tokens of a Python text with their positions, also where the text can't be parsed."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from torchferry.source.decode import SourceText
from torchferry.source.literals import LiteralError, string_tokens

_LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


class Token(NamedTuple):
    """A name, an operator or a literal; `start` is the position of its first byte."""

    kind: int
    text: str
    start: int


def tokens_of(source: SourceText) -> Iterator[Token]:
    """Everything but comments and line ends; nothing more where the text is no Python."""
    text = re.sub("\r\n|\r", "\n", source.decoded.text)
    lines = text.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in _LAYOUT:
                continue
            line, column = token.start
            start = source.line_starts[line - 1] + len(lines[line - 1][:column].encode("utf-8"))
            yield Token(token.type, token.string, start)
    except (tokenize.TokenError, SyntaxError):
        return


def names_of(source: SourceText) -> Iterator[tuple[int, str]]:
    """Position and text of every name and keyword, also in the fields of f-strings."""
    for token in tokens_of(source):
        if token.kind == tokenize.NAME:
            yield token.start, token.text
        elif token.kind == tokenize.STRING and not token.text.isascii():
            yield from _names_in_fields(source.data, token)


def _names_in_fields(data: bytes, token: Token) -> Iterator[tuple[int, str]]:
    """The names between the literal texts of an f-string, which is one token before Python 3.12."""
    try:
        found = string_tokens(data, token.start, token.start + len(token.text.encode("utf-8")))
    except LiteralError:
        return
    texts = [text for string in found if string.is_f_string for text in string.texts]
    for before, after in pairwise(texts):
        field = data[before.end : after.start].decode("utf-8")
        for match in re.finditer(r"\w+", field):
            yield before.end + len(field[: match.start()].encode("utf-8")), match.group()
