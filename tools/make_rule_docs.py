"""Writes the table of docs/en/rules/index.md and docs/zh/rules/index.md from the rules; `make docs` calls it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from torchferry.conversion.rule import Rule, all_rules
from torchferry.text import Language, Text

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES: tuple[Language, ...] = ("en", "zh")
BLOCK = re.compile(r"(<!-- rules: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = Text("| Id | Name | What it does | Only with |", "| 编号 | 名称 | 作用 | 启用选项 |")


def page(language: Language) -> Path:
    """The page in a language."""
    return ROOT / "docs" / language / "rules" / "index.md"


def option_of(rule: Rule) -> str:
    """The option that turns the rule on; none: it is always on."""
    return f"--{rule.option.replace('_', '-')}" if rule.option else ""


def summary(rule: Rule, language: Language) -> str:
    """What the rule does, as a sentence without its full stop."""
    text = rule.summary.in_language(language)
    is_word = text.partition(" ")[0].strip(",:").isalpha()
    return text[:1].upper() + text[1:] if is_word else text


def with_table(text: str, language: Language) -> str:
    """A page with its table made anew."""
    rows = [row(rule, language) for rule in all_rules()]
    table = "\n".join([HEAD.in_language(language), "|---|---|---|---|", *rows])
    return BLOCK.sub(lambda match: f"{match[1]}{table}\n{match[2]}", text)


def row(rule: Rule, language: Language) -> str:
    """One rule."""
    option = f"`{option_of(rule)}`" if rule.option else ""
    return f"| `{rule.id}` | {rule.name} | {summary(rule, language)} | {option} |"


def main() -> int:
    """Write both pages."""
    for language in LANGUAGES:
        file = page(language)
        file.write_text(with_table(file.read_text("utf-8"), language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
