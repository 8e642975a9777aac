"""Standard output and error as reports are written to them: how wide they are, which colours and characters they take,
readers that have seen enough."""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Literal, TextIO

from torchferry.text import Language, can_show

WIDEST = 110  # columns; beyond that, eyes lose the row on the way from a name to its number
WIDTH_OF_FILES = 100  # of pipes and files, which have none
_NARROWEST = 40

ColorChoice = Literal["auto", "always", "never"]


class Styles(Enum):
    """What a stream can show besides characters."""

    NONE = "nothing"
    WEIGHTS = "bold and dim"
    COLORS = "colours, too"


def styles_of(stream: TextIO, choice: ColorChoice = "auto") -> Styles:
    """What --color, else FORCE_COLOR, TERM, NO_COLOR, and the stream itself allow."""
    if choice != "auto":
        return Styles.COLORS if choice == "always" else Styles.NONE
    forced = os.environ.get("FORCE_COLOR", "")
    if forced == "0" or not (forced or has_cursor(stream)):
        return Styles.NONE
    return Styles.WEIGHTS if os.environ.get("NO_COLOR") else Styles.COLORS


def has_cursor(stream: TextIO) -> bool:
    """Whether it is a terminal on which a line can be written over."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int:
    """How wide text is set: COLUMNS, else the terminal, else that of files; never wider than can be read."""
    named = os.environ.get("COLUMNS", "")
    width = int(named) if named.isascii() and named.isdecimal() else 0
    if not width and stream.isatty():
        try:
            width = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            width = 0
    return min(max(width, _NARROWEST), WIDEST) if width else WIDTH_OF_FILES


def language_for(stream: TextIO, language: Language) -> Language:
    """English where the stream's encoding has no Chinese."""
    return language if can_show(language, stream) else "en"


# Characters that are there for looks, and how ASCII draws them. A terminal that is not UTF-8 may have some of them, and
# then often in the width of two columns.
_DRAWN = {
    **dict.fromkeys("─━═╌┄‐‑–—−", "-"),
    **dict.fromkeys("│┃║‖▏", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰╞╪╡╸╺", "+"),
    **dict.fromkeys("█▇▆▅▄▓■", "#"),
    **dict.fromkeys("▃▂▁", "_"),
    **dict.fromkeys("░▒·•⋅", "."),
    **dict.fromkeys("✓✔", "+"),
    **dict.fromkeys("×✕✗✘", "x"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’‹›", "'"),
    **dict.fromkeys("≈∼", "~"),
    "…": "...", "⋯": "...", "→": "->", "←": "<-", "↔": "<->", "⇒": "=>", "↓": "v", "↑": "^", "↩": "<-",
    "▸": ">", "▾": "v", "●": "*", "○": "o", "⚠": "!", "≤": "<=", "≥": ">=", "≠": "!=", "±": "+/-", "÷": "/",
    "µ": "u", "μ": "u", "²": "^2", "³": "^3", "\u00a0": " ", "\u202f": " ", "¿": "?",
}  # fmt: skip
_TO_ASCII = str.maketrans(_DRAWN)
_GAP = re.compile(r"( {2,})")
_ERRORS = "drawn-in-ascii"


def is_unicode(stream: TextIO) -> bool:
    """Whether its encoding is one of UTF, which has every character."""
    return _encoding(stream).startswith("utf")


def _encoding(stream: TextIO) -> str:
    try:
        return codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name
    except LookupError:
        return "ascii"


def drawn_in_ascii(text: str) -> str:
    """Boxes, bars, dashes, arrows and ticks as ASCII; what becomes longer takes the room from the blanks behind it, so
    that columns stay columns."""
    return "\n".join(map(_line_in_ascii, text.split("\n")))


def _line_in_ascii(line: str) -> str:
    if line.isascii():
        return line
    owed, pieces = 0, []
    for piece in _GAP.split(line):
        if piece.startswith("  "):
            taken = min(owed, len(piece) - 1)
            owed -= taken
            pieces.append(piece[taken:])
        else:
            pieces.append(piece.translate(_TO_ASCII))
            owed += len(pieces[-1]) - len(piece)
    return "".join(pieces)


def never_fail(*streams: TextIO) -> None:
    """Let what a stream's encoding lacks be drawn in ASCII or written out as \\u4e2d, whoever prints it."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and not is_unicode(stream):
            reconfigure(errors=_ERRORS)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_DRAWN.get(letter) or _written_out(letter) for letter in lacking), error.end


def _written_out(letter: str) -> str:
    return letter.encode("ascii", "backslashreplace").decode("ascii")


codecs.register_error(_ERRORS, _replaced)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print; a reader who has seen enough, as in `ferry scan . | head`, does not change the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Let nothing be flushed to a closed pipe or a full disk at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_text(stream: TextIO, text: str) -> None:
    """Write text; what the stream's encoding lacks is drawn in ASCII or written out, rather than fail."""
    if not is_unicode(stream):
        encoding = _encoding(stream)
        text = drawn_in_ascii(text).encode(encoding, _ERRORS).decode(encoding)
    stream.write(text)
    stream.flush()


def write_bytes(stream: TextIO, pieces: Iterable[bytes]) -> None:
    """Write bytes as they are; to a stream without any, the text that they are."""
    binary = getattr(stream, "buffer", None)
    stream.flush()
    for piece in pieces:
        if binary is None:
            stream.write(piece.decode("utf-8"))
        else:
            binary.write(piece)
    (binary or stream).flush()
