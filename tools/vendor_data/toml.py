"""Writes the small part of TOML that vendor tables need, always in the same way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

Value = str | bool | int | list[str]

HEADER = "# Made by tools/build_vendor_data.py from the project's fact tables. Edit those, or the tool; not this file.\n"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def key(text: str) -> str:
    bare = text.replace("_", "").replace("-", "")
    return text if bare.isascii() and bare.isalnum() else quoted(text)


def value(item: Value) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        return str(item)
    if isinstance(item, str):
        return quoted(item)
    return "[" + ", ".join(quoted(entry) for entry in item) + "]"


def pairs(table: Mapping[str, Value]) -> str:
    return "".join(f"{key(name)} = {value(item)}\n" for name, item in table.items())


def table(name: str, content: Mapping[str, Value]) -> str:
    return f"\n[{name}]\n{pairs(content)}" if content else ""


def long_list(name: str, items: Iterable[str]) -> str:
    """A list with one entry per line, so that a change shows as one line in a diff."""
    return f"{key(name)} = [\n" + "".join(f"  {quoted(item)},\n" for item in items) + "]\n"


def tables(name: str, rows: Iterable[Mapping[str, Value]]) -> str:
    """An array of tables."""
    return "".join(f"\n[[{name}]]\n{pairs(row)}" for row in rows)
