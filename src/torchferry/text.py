"""Text shown to users, always in English and Chinese, and the choice between the two."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Literal, NamedTuple, TextIO

Language = Literal["en", "zh"]


class Text(NamedTuple):
    """One sentence in both languages; placeholders in braces are the same in both."""

    en: str
    zh: str

    def format(self, **values: object) -> Text:
        """Fill the placeholders of both languages; a value that is a Text itself goes into each in its own."""
        texts = {name: value for name, value in values.items() if isinstance(value, Text)}
        english = {**values, **{name: text.en for name, text in texts.items()}}
        chinese = {**values, **{name: text.zh for name, text in texts.items()}}
        return Text(self.en.format(**english), self.zh.format(**chinese))

    def in_language(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


NOTHING = Text("", "")

_BETWEEN_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff，。：；（）]) (?=[\u4e00-\u9fff])")


def did_you_mean(names: Sequence[str], fallback: Text = NOTHING) -> Text:
    """A question about a name that was misspelled; the fallback where nothing is similar."""
    if not names:
        return fallback
    return Text(f"did you mean {' or '.join(names)}?", f"是否要输入 {' 或 '.join(names)}？")


def joined_chinese(text: Text) -> Text:
    """Without the blanks that a template has around a name, where the name is Chinese."""
    return Text(text.en, _BETWEEN_CHINESE.sub("", text.zh))


def named(name: Text, text: Text | str) -> Text:
    """A name and what it holds, with a colon between them."""
    return Text("{name}: {text}", "{name}：{text}").format(name=name, text=text)


def then(first: Text, second: Text) -> Text:
    """Two clauses, the second of which may be empty."""
    return Text(f"{first.en}; {second.en}", f"{first.zh}；{second.zh}") if second.en else first


def user_language() -> Language:
    """The language of this user: TORCHFERRY_LANG, else the locale, else English; English where nothing else can be
    shown."""
    for variable in ("TORCHFERRY_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable)
        if value:
            wanted: Language = "zh" if value.lower().startswith("zh") else "en"
            return wanted if can_show(wanted, sys.stdout, sys.stderr) else "en"
    return "en"


def language_in(words: Sequence[str]) -> Language | None:
    """The language that --lang names among these words; None without it."""
    given = list(words[: words.index("--")] if "--" in words else words)
    for word, following in zip(given, [*given[1:], ""], strict=False):
        value = word[7:] if word.startswith("--lang=") else following if word == "--lang" else ""
        if value in ("en", "zh"):
            return "zh" if value == "zh" else "en"
    return None


def can_show(language: Language, *streams: TextIO | None) -> bool:
    """Whether streams have the characters of a language in their encodings."""
    if language == "zh":
        for stream in streams:
            try:
                "中文，。".encode(getattr(stream, "encoding", None) or "utf-8")
            except (LookupError, UnicodeError):
                return False
    return True
