"""Writes the tables of docs/en/how-to/similar.md and docs/zh/how-to/similar.md from the vendors' data; `make docs` calls it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from torchferry.conversion.similar.signature import readable
from torchferry.text import Language, Text
from torchferry.vendors.registry import get_vendor, vendor_names
from torchferry.vendors.similar import Similar, load_similar

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES: tuple[Language, ...] = ("en", "zh")
REPLACED = re.compile(r"(<!-- replaced: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
REPORTED = re.compile(r"(<!-- reported: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
REPLACED_HEAD = Text("| Call | If | Becomes | For |", "| 调用 | 条件 | 替换为 | 目标 |")
REPORTED_HEAD = Text("| Call | If | Why | For |", "| 调用 | 条件 | 原因 | 目标 |")
RULER = "|---|---|---|---|"
ALL = Text("all", "全部")
GIVEN = Text("`{name}` is given", "给出 `{name}`")
WHOLE = Text("`{name}` is a whole number", "`{name}` 是整数字面量")
OTHERWISE = Text("otherwise", "其余情况")
LONGEST = 110  # letters of code that a cell shows as it is


def page(language: Language) -> Path:
    """The page in a language."""
    return ROOT / "docs" / language / "how-to/similar.md"


def with_tables(text: str, language: Language) -> str:
    """A page with its tables made anew."""
    for block, head, is_replaced in ((REPLACED, REPLACED_HEAD, True), (REPORTED, REPORTED_HEAD, False)):
        table = "\n".join([head.in_language(language), RULER, *_rows(language, is_replaced)])
        text = block.sub(rf"\g<1>{table.replace(chr(92), chr(92) * 2)}\n\g<2>", text)
    return text


def _rows(language: Language, is_replaced: bool) -> list[str]:
    """A row for each entry that is the same for several targets."""
    folders = {name: get_vendor(name).folder for name in vendor_names()} | {"portable": ""}
    found: dict[tuple[str, str, str], list[str]] = {}
    for target, folder in folders.items():
        seen: set[str] = set()
        for entry in load_similar(folder):
            if bool(entry.use) is is_replaced:
                third = _code(entry.use) if is_replaced else entry.why.in_language(language)
                is_last = entry.cuda in seen and not entry.when
                condition = OTHERWISE.in_language(language) if is_last else _condition(entry, language)
                found.setdefault((entry.cuda, condition, third), []).append(target)
            seen.add(entry.cuda)
    return [
        f"| `{cuda}` | {condition} | {third} | {_targets(targets, len(folders), language)} |"
        for (cuda, condition, third), targets in sorted(found.items(), key=lambda item: item[0][0])
    ]


def _targets(targets: list[str], count: int, language: Language) -> str:
    return ALL.in_language(language) if len(targets) == count else ", ".join(f"`{name}`" for name in targets)


def _condition(entry: Similar, language: Language) -> str:
    words = []
    for condition in entry.when:
        name, equal, _ = condition.partition("=")
        if equal:
            words.append(f"`{condition}`")
        elif condition.endswith(":whole"):
            words.append(WHOLE.format(name=condition.partition(":")[0]).in_language(language))
        else:
            words.append(GIVEN.format(name=name).in_language(language))
    return ", ".join(words)


def _code(use: str) -> str:
    """The expression, or the functions that a long one calls."""
    text = readable(use)
    if len(text) <= LONGEST:
        return "`" + text.replace("|", "\\|") + "`"
    names = re.findall(r"\btorch\w*(?:\.\w+)+(?=\()", text)
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


def main() -> int:
    """Write both pages."""
    for language in LANGUAGES:
        file = page(language)
        file.write_text(with_tables(file.read_text("utf-8"), language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
