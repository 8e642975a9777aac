"""Prints some of the texts that users see, drawn at random, for people who review their language.

python -m tools.sample_messages --lang zh --count 100 --seed 1
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torchferry.text import Language, Text
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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text":
            languages = [_template(argument) for argument in node.args]
            if len(languages) == 2 and None not in languages:
                yield ShownText(f"{path.relative_to(SOURCE)}:{node.lineno}", Text(*map(str, languages)))


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


def sample(language: Language, count: int, seed: int, words: int = 1) -> list[str]:
    """So many texts with their places; the same for the same seed."""
    found = [
        f"{place}  {text.in_language(language)}"
        for place, text in shown_texts()
        if len(text.en.split()) >= words and text.in_language(language)
    ]
    return random.Random(seed).sample(found, min(count, len(found)))


def main() -> None:
    """Parse, draw, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--lang", choices=("en", "zh"), default="en", help="language of the texts (default: en)"
    )
    parser.add_argument("--count", type=int, default=100, help="number of texts (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--words",
        type=int,
        default=4,
        help="fewest words of the English text, to leave labels out (default: 4)",
    )
    args = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print("\n".join(sample(args.lang, args.count, args.seed, args.words)))


if __name__ == "__main__":
    main()
