"""What a key of a vendor's file may hold: its type, its form, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """The type of a key's value, in the words of an error message."""

    TEXT = "a string"
    FLAG = "true or false"
    NUMBER = "a whole number"
    TEXTS = "a list of strings"
    TEXT_TABLE = "a table of strings"
    LIST_TABLE = "a table of lists of strings"
    TABLE = "a table"
    TABLES = "a table of tables"
    ROWS = "an array of tables"


@dataclass(frozen=True)
class Key:
    """One key of a file: its type, what it may hold, and how it is written."""

    kind: Kind
    example: str = ""  # as written in the file
    required: bool = False
    allowed: tuple[str, ...] = ()
    pattern: str = ""  # for a string, or for each string of a table or list
    rows: Mapping[str, Key] = field(default_factory=dict)  # keys of a table, or of each table of several


NAME = r"[A-Za-z_]\w*"
DOTTED = rf"{NAME}(\.{NAME})*"
OPTIONAL_DOTTED = rf"({DOTTED})?"


def text(
    example: str = '""', pattern: str = "", required: bool = False, allowed: tuple[str, ...] = ()
) -> Key:
    """A key whose value is a string."""
    return Key(Kind.TEXT, example, required, allowed=allowed, pattern=pattern)


SOURCES = Key(
    Kind.ROWS,
    '[[sources]] with name = "...", version = "...", path = "..."',
    rows={"name": text('"owner/repository"', required=True), "version": text(), "path": text()},
)
