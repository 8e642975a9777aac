"""The keys of a vendor's files: each is a field of a record, which says what it may hold and how it is written.

A record is a frozen dataclass for one file or one table of it. From its fields come the check of the file and the record that is
made of it (`schema.py`), what `ferry vendors` shows, and the tables of keys in the docs. What a key means, in English and Chinese,
stands in `meanings.toml`, so that a process that only reads vendors reads no prose.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any, cast

from torchferry.text import Text

NAME = r"[A-Za-z_]\w*"
DOTTED = rf"{NAME}(\.{NAME})*"
OPTIONAL_DOTTED = rf"({DOTTED})?"
SETTING = rf"{NAME}=.*"
PATHS = r"~?/.+"


class KeyType(Enum):
    """The type of a key's value, in the words of an error message."""

    TEXT = Text("a string", "字符串")
    FLAG = Text("true or false", "true 或 false")
    NUMBER = Text("a whole number", "整数")
    TEXTS = Text("a list of strings", "字符串列表")
    TEXT_TABLE = Text("a table of strings", "字符串表")
    LIST_TABLE = Text("a table of lists of strings", "由字符串列表组成的表")
    TABLE = Text("a table", "表")
    TABLES = Text("a table of tables", "由表组成的表")
    ROWS = Text("an array of tables", "表的数组")


@dataclass(frozen=True)
class Key:
    """What is known of a key of a file."""

    kind: KeyType
    example: str  # as written in the file
    hint: str = ""  # what error messages say after the example
    required: bool = False
    pattern: str = ""  # for a string, or for each string of a table or list
    choices: tuple[str, ...] = ()
    regex: bool = False  # its strings are regular expressions
    record: type[Any] | None = None  # of a table, or of each table of several
    value: type[Any] | None = None  # what it becomes in the record: an enum, a number, a set
    name: str = ""  # in the file, where that is no name for a field
    translated: bool = False  # beside it stands the same in Chinese, under the name with _zh


def _field(key: Key, default: Any) -> Any:
    """The field of a record; without a default where the key is required, so that nothing is made without it."""
    if default is MISSING and key.required:
        return field(metadata={"key": key})
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"key": key})
    return field(default=default, metadata={"key": key})


def text(example: str = '""', pattern: str = "", default: Any = MISSING, **more: Any) -> Any:
    """A key whose value is a string; "" when it is left out, unless another default is given."""
    key = Key(KeyType.TEXT, example, pattern=pattern, **more)
    return _field(key, "" if default is MISSING and not key.required else default)


def translated(example: str, pattern: str = "", required: bool = False) -> Any:
    """Two keys for one text: in English, and in Chinese under the name with _zh."""
    key = Key(KeyType.TEXT, example, pattern=pattern, required=required, translated=True)
    return _field(key, MISSING if required else Text("", ""))


def expression(example: str, pattern: str = "", **more: Any) -> Any:
    """A key whose value is a regular expression."""
    return text(example, pattern, regex=True, **more)


def wording(*placeholders: str) -> Any:
    """A message in which nothing but these placeholders stands in braces."""
    named = ", ".join(f"{{{name}}}" for name in placeholders)
    inside = "".join(rf"|\{{{name}\}}" for name in placeholders)
    return text(f'"text with {named}"' if named else '"text"', rf"(?s)([^{{}}]{inside})*")


def choice(values: type[Enum], example: str, default: Any = MISSING, required: bool = False) -> Any:
    """A key whose value is one of the values of an enum."""
    choices = tuple(str(entry.value) for entry in values)
    return _field(Key(KeyType.TEXT, example, required=required, choices=choices, value=values), default)


def fraction(example: str) -> Any:
    """A key whose value is a number with a point, as a string; the example when it is left out."""
    key = Key(KeyType.TEXT, example, pattern=r"[\d.]+", value=float)
    return _field(key, float(example.strip('"')))


def flag(example: str, default: bool | None = False) -> Any:
    """A key whose value is true or false."""
    return _field(Key(KeyType.FLAG, example), default)


def number(example: str, default: int | None = 0) -> Any:
    """A key whose value is a whole number."""
    return _field(Key(KeyType.NUMBER, example), default)


def texts(example: str, pattern: str = "", default: Any = MISSING, **more: Any) -> Any:
    """A key whose value is a list of strings; none when it is left out, unless another default is given."""
    key = Key(KeyType.TEXTS, example, pattern=pattern, **more)
    return _field(key, () if default is MISSING and not key.required else default)


def settings() -> Any:
    """A key whose value is a list of VARIABLE=value."""
    return texts('["VARIABLE=1"]', SETTING)


def text_table(example: str, pattern: str = "", required: bool = False) -> Any:
    """A key whose value is a table of strings."""
    key = Key(KeyType.TEXT_TABLE, example, pattern=pattern, required=required)
    return _field(key, MISSING if required else {})


def list_table(example: str) -> Any:
    """A key whose value is a table of lists of strings."""
    return _field(Key(KeyType.LIST_TABLE, example), {})


def table(record: type[Any], example: str, default: Any = MISSING) -> Any:
    """A key whose value is a table with keys of its own; the record with nothing in it when it is left out."""
    key = Key(KeyType.TABLE, example, record=record)
    return _field(key, record() if default is MISSING else default)


def tables(record: type[Any], example: str) -> Any:
    """A key whose value is a table of such tables, each with a name."""
    return _field(Key(KeyType.TABLES, example, record=record), {})


def rows(record: type[Any], example: str) -> Any:
    """A key whose value is an array of such tables."""
    return _field(Key(KeyType.ROWS, example, record=record), ())


def fields_of(record: type[Any]) -> tuple[tuple[str, str, Key], ...]:
    """The fields of a record that are keys: field, name in the file, key."""
    return _fields_of(cast(Hashable, record))


@cache
def _fields_of(record: Any) -> tuple[tuple[str, str, Key], ...]:
    found = ((each.name, each.metadata.get("key")) for each in fields(record))
    return tuple((name, key.name or name, key) for name, key in found if key is not None)


def keys_of(record: type[Any]) -> Mapping[str, Key]:
    """The keys of a record's table, by their names in the file."""
    found: dict[str, Key] = {}
    for _, name, key in fields_of(record):
        found[name] = key
        if key.translated:
            found[f"{name}_zh"] = _IN_CHINESE
    return found


_IN_CHINESE = Key(KeyType.TEXT, '"the same in Chinese"')


@dataclass(frozen=True)
class Source:
    """Where a fact comes from."""

    name: str = text('"owner/repository"', required=True)
    version: str = text()
    path: str = text()


def sources() -> Any:
    """The key of every file for where its facts come from."""
    return rows(Source, '[[sources]] with name = "...", version = "...", path = "..."')
