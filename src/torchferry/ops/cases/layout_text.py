"""Python text that a formatter leaves as it is: on one line where it fits, else one item for each line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 88  # the narrowest that formatters are commonly set to
_STEP = 4


@dataclass(frozen=True)
class Group:
    """Items in brackets: a call, a list, a dictionary."""

    opening: str  # torch.full(
    items: tuple[Item, ...]
    closing: str
    tail: str = ""  # what follows: .to(torch.int8)


@dataclass(frozen=True)
class Pair:
    """A name or a key before an item."""

    lead: str  # `dim=` or `"dim": `
    value: Item


Item = str | Group | Pair


def statement(lead: str, value: Item, depth: int = 1) -> str:
    """`lead` and a value, indented."""
    return _laid(value, " " * (_STEP * depth) + lead, depth, "")


def _laid(item: Item, lead: str, depth: int, closing: str) -> str:
    flat = lead + on_one_line(item) + closing
    if len(flat) <= WIDTH or isinstance(item, str):
        return flat
    if isinstance(item, Pair):
        return _laid(item.value, lead + item.lead, depth, closing)
    if not item.items:
        return flat
    inner = " " * (_STEP * (depth + 1))
    lines = [_laid(each, inner, depth + 1, ",") for each in item.items]
    last = " " * (_STEP * depth) + item.closing + item.tail + closing
    return "\n".join([lead + item.opening, *lines, last])


def on_one_line(item: Item) -> str:
    """The text without line breaks."""
    if isinstance(item, str):
        return item
    if isinstance(item, Pair):
        return item.lead + on_one_line(item.value)
    comma = "," if item.opening == "(" and len(item.items) == 1 else ""
    return item.opening + ", ".join(map(on_one_line, item.items)) + comma + item.closing + item.tail


def call(name: str, *items: Item, tail: str = "") -> Group:
    """name(items)"""
    return Group(f"{name}(", items, ")", tail)


def sequence(items: Sequence[Item]) -> Group:
    """[items]"""
    return Group("[", tuple(items), "]")


def quoted(text: str) -> str:
    """A string as formatters write it."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)
