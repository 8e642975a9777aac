"""One word for each thing: the table of words in the glossary, held by pages and messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = "docs/{}/how-it-works/glossary.md"
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


class Row(NamedTuple):
    """A thing: its word in both languages, and the words that are not used for it."""

    english: str
    chinese: str
    not_english: str
    not_chinese: str


@cache
def table(language: str) -> list[Row]:
    section = (ROOT / GLOSSARY.format(language)).read_text("utf-8").rpartition("\n## ")[2]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [
        Row(*(cell.strip() for cell in line.strip("| ").split(" | "))) for line in map(_padded, lines[1:])
    ]


def _padded(line: str) -> str:
    return " | ".join(cell.strip() or "-" for cell in line.strip().strip("|").split("|"))


def unwanted(language: str) -> re.Pattern[str]:
    if language == "en":
        words = [word for row in table("en") for word in row.not_english.split(", ") if word != "-"]
        return re.compile(rf"\b({'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
    words = [word for row in table("en") for word in row.not_chinese.split("、") if word != "-"]
    return re.compile("|".join(map(re.escape, words)))


def prose(language: str) -> Iterator[tuple[str, str]]:
    """Each page without its code, and without the table that names the words."""
    for path in sorted((ROOT / "docs" / language).rglob("*.md")):
        text = _CODE.sub("", path.read_text("utf-8"))
        if path.name == "glossary.md":
            text = text.rpartition("\n## ")[0]
        yield str(path.relative_to(ROOT)), text


def messages() -> Iterator[tuple[str, str, str]]:
    """Both languages of each Text(...) that is written out in the code."""
    for path in sorted((ROOT / "src/torchferry").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text":
                said = [each.value for each in node.args if isinstance(each, ast.Constant)]
                if len(said) == 2:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", str(said[0]), str(said[1])


def test_both_languages_have_the_same_table() -> None:
    assert len(table("en")) > 30
    assert table("en") == table("zh")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_use_these_words(language: str) -> None:
    found = [
        (page, each.group()) for page, text in prose(language) for each in unwanted(language).finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_messages_use_these_words(language: str) -> None:
    found = [
        (place, each.group())
        for place, english, chinese in messages()
        for each in unwanted(language).finditer(english if language == "en" else chinese)
    ]
    assert found == []
