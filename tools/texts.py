"""Every sentence that the source shows to users, in both languages: the literals of `Text`, the vendors' data."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torchferry.text import Text
from torchferry.vendors.schema import toml_module

SOURCE = Path(__file__).parent.parent / "src/torchferry"
# Tables of data that name a text for people, whose Chinese is the same key with _zh.
_CHINESE = "_zh"


class ShownText(NamedTuple):
    """A text and where it stands."""

    place: str
    text: Text


def shown_texts() -> Iterator[ShownText]:
    """All of them, in the order of their files."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from _of_module(path)
    for path in sorted(SOURCE.rglob("*.toml")):
        for text in _of_table(toml_module().loads(path.read_text("utf-8"))):
            yield ShownText(str(path.relative_to(SOURCE)), text)


def _of_module(path: Path) -> Iterator[ShownText]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        is_text = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text"
        if is_text and len(node.args) == 2:
            english, chinese = map(_template, node.args)
            if english is not None and chinese is not None:
                yield ShownText(f"{path.relative_to(SOURCE)}:{node.lineno}", Text(english, chinese))


def _template(node: ast.expr) -> str | None:
    """The text of a literal; {...} where a value goes. None: it is not a literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"  # type: ignore[attr-defined]
            for part in node.values
        )
    return None


def _of_table(table: Any) -> Iterator[Text]:
    if isinstance(table, list):
        for entry in table:
            yield from _of_table(entry)
    elif isinstance(table, dict):
        for key, value in table.items():
            chinese = table.get(f"{key}{_CHINESE}")
            if isinstance(value, str) and isinstance(chinese, str):
                yield Text(value, chinese)
            elif not isinstance(value, str):
                yield from _of_table(value)


def utf8_output() -> None:
    """Print Chinese whatever the locale is."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
