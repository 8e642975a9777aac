"""Chinese for phrases of vendors' tables, which are written in English."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.schema import toml_module

FILE = Path(__file__).with_name("any") / "phrases.toml"


@cache
def phrases() -> Mapping[str, str]:
    """English -> Chinese."""
    rows = toml_module().loads(FILE.read_text("utf-8"))["phrases"]
    return {row["en"]: row["zh"] for row in rows}


def phrase(words: str) -> Text:
    """A phrase of a vendor's table in both languages; in English alone where nobody has translated it."""
    return Text(words, phrases().get(words, words))
