"""Reading a Python file: decoding, line offsets, tokens, and the parts of f-strings."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

NEWLINE = re.compile(r"\r\n|\r|\n")
PREFIX = re.compile(r"[A-Za-z]*")


def decode(data: bytes) -> str:
    """The text of a Python file, by its cookie or BOM; Latin-1 where that fails, so that nothing is lost."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return data.decode("latin-1")


def split_lines(text: str) -> list[str]:
    """Lines with their ends, where only CR, LF and CRLF end a line (as Python sees it)."""
    lines: list[str] = []
    start = 0
    for match in NEWLINE.finditer(text):
        lines.append(text[start : match.end()])
        start = match.end()
    if start < len(text):
        lines.append(text[start:])
    return lines


@dataclass
class Lines:
    """Converts between offsets and (line, column), for characters and for the byte columns of `ast`."""

    text: str
    lines: list[str] = field(init=False)
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = split_lines(self.text)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, col: int) -> int:
        """The offset of a 1-based line and a 0-based character column."""
        return self.starts[min(line - 1, len(self.starts) - 1)] + col

    def offset_of_bytes(self, line: int, col: int) -> int:
        """The same for a column counted in UTF-8 bytes."""
        if line > len(self.lines):
            return self.starts[-1]
        text = self.lines[line - 1]
        if not text.isascii():
            col = len(text.encode("utf-8")[:col].decode("utf-8", "ignore"))
        return self.starts[line - 1] + col

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset."""
        line = bisect_right(self.starts, offset)
        line = min(line, len(self.lines)) or 1
        return line, offset - self.starts[line - 1] + 1


@dataclass(frozen=True)
class Token:
    """A name, a string or a comment, with its offsets in the text that was tokenized."""

    kind: str
    start: int
    end: int
    text: str


def tokens(lines: Lines) -> Iterator[Token]:
    """Names, strings (an f-string as one) and comments."""
    feed = iter([*lines.lines, ""])
    depth, begin = 0, 0
    for tok in tokenize.generate_tokens(lambda: next(feed, "")):
        start, end = lines.offset(*tok.start), lines.offset(*tok.end)
        name = tokenize.tok_name[tok.type]
        if name == "FSTRING_START":
            begin = start if not depth else begin
            depth += 1
        elif name == "FSTRING_END":
            depth -= 1
            if not depth:
                yield Token("string", begin, end, lines.text[begin:end])
        elif not depth and name in ("NAME", "STRING", "COMMENT"):
            yield Token(name.lower(), start, end, lines.text[start:end])


def string_parts(raw: str) -> Iterator[tuple[str, int, int]]:
    """('text' | 'code', start, end) of a string token: code only where it is an f-string's expression."""
    match = PREFIX.match(raw)
    prefix = match.group() if match else ""
    quote = 3 if raw[len(prefix) : len(prefix) + 3] in ('"""', "'''") else 1
    start, end = len(prefix) + quote, len(raw) - quote
    if "f" not in prefix.lower():
        yield "text", start, end
        return
    yield from _split_fields(raw, start, end)


def _split_fields(raw: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    at = begin = start
    while at < end:
        if raw[at : at + 2] in ("{{", "}}"):
            at += 2
        elif raw[at] == "{":
            yield "text", begin, at
            stop = _expression_end(raw, at + 1, end)
            yield "code", at + 1, stop
            close = _field_end(raw, stop, end)
            colon = raw.find(":", stop, close)
            if colon >= 0:
                yield from _split_fields(raw, colon + 1, close)
            at = begin = close + 1
        else:
            at += 1
    yield "text", begin, end


def _expression_end(raw: str, at: int, end: int) -> int:
    depth, quote = 0, ""
    while at < end:
        char = raw[at]
        if quote:
            if raw.startswith(quote, at):
                at, quote = at + len(quote), ""
                continue
        elif char in "\"'":
            quote = raw[at : at + 3] if raw[at : at + 3] in ('"""', "'''") else char
            at += len(quote)
            continue
        elif char in "([{":
            depth += 1
        elif char in ")]}" and depth:
            depth -= 1
        elif not depth and _ends_expression(raw, at):
            break
        at += 1
    trimmed = raw[:at].rstrip()
    return len(trimmed) - 1 if trimmed.endswith("=") and trimmed[-2:] not in ("==", "!=", "<=", ">=") else at


def _ends_expression(raw: str, at: int) -> bool:
    char = raw[at]
    return char in "}:" or (
        char == "!" and raw[at + 1 : at + 2] in ("r", "s", "a") and raw[at + 2 : at + 3] in (":", "}")
    )


def _field_end(raw: str, at: int, end: int) -> int:
    depth = 0
    while at < end:
        if raw[at] == "{":
            depth += 1
        elif raw[at] == "}":
            if not depth:
                return at
            depth -= 1
        at += 1
    return end
