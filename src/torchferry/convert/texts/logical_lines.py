"""Which lines begin a statement, for code that Python's own tokenizer can't read."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"#|'''|\"\"\"|'|\"|[\[({]|[\])}]")
_ENDING = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ("'", '"', "'''", '"""')}


class LineReader:
    """Reads line after line, and knows whether the next one begins a statement."""

    def __init__(self) -> None:
        self._depth = 0  # of brackets
        self._quote = ""  # of the string that is open
        self._is_continued = False  # by a backslash

    @property
    def begins_statement(self) -> bool:
        return not (self._depth or self._quote or self._is_continued)

    def read(self, line: str) -> None:
        """Take in one line, without its line feed."""
        line = line.rstrip("\r")
        position = 0
        while match := (_ENDING[self._quote] if self._quote else _TOKEN).search(line, position):
            token = match.group()
            if token == "#":
                line = ""
                break
            position = match.end()
            self._take(token)
        self._is_continued = line.endswith("\\")
        if len(self._quote) == 1 and not self._is_continued:
            self._quote = ""  # a string of one line ends with it

    def _take(self, token: str) -> None:
        if self._quote:
            self._quote = "" if token == self._quote else self._quote
        elif token[0] in "'\"":
            self._quote = token
        elif token in "[({":
            self._depth += 1
        else:
            self._depth = max(self._depth - 1, 0)
