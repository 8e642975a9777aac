"""Writes what the two devices differ in into docs/en/how-it-works/emulated.md and docs/zh/how-it-works/emulated.md."""

from __future__ import annotations

import re
from pathlib import Path

from torchferry.text import Language, Text

from .comparison import ROOT, Verdict, known_reasons

_BLOCKS = {
    place: re.compile(rf"(<!-- {place} judged: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
    for place in ("simulated", "layer")
}
_HEAD = Text(
    "| Program | Differs in | Why it stays |\n|---|---|---|",
    "| 程序 | 差异所在 | 保留的原因 |\n|---|---|---|",
)
_WHAT = {
    "values": Text("result", "结果"),
    "error": Text("error", "报错"),
    "warnings": Text("warnings", "警告"),
}
_COUNT = Text(
    "{programs} programs were run on both; {same} do the same on both, the others are these:",
    "两种设备上都运行了 {programs} 个程序；{same} 个完全一致，其余如下：",
)
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def write_tables(verdict: Verdict, places: tuple[str, str]) -> None:
    """Both pages."""
    for language in LANGUAGES:
        page = page_of(language)
        page.write_text(with_table(page.read_text("utf-8"), verdict, language, places), "utf-8")


def page_of(language: Language) -> Path:
    """The page in a language."""
    return ROOT / "docs" / language / "how-it-works/emulated.md"


def with_table(text: str, verdict: Verdict, language: Language, places: tuple[str, str]) -> str:
    """A page with its table made anew."""
    differing = {difference.program for difference in verdict.differences}
    count = _COUNT.format(programs=verdict.programs, same=verdict.programs - len(differing))
    rows = [count.in_language(language), "", _HEAD.in_language(language), *_rows(verdict, language, places)]
    table = "\n".join(rows).replace("\\", r"\\")
    return _BLOCKS[places[0]].sub(rf"\g<1>{table}\n\g<2>", text)


def _rows(verdict: Verdict, language: Language, places: tuple[str, str]) -> list[str]:
    reasons = known_reasons(places)
    rows: dict[str, tuple[list[str], list[str]]] = {}  # reason -> programs, in what they differ
    for difference in verdict.differences:
        reason = reasons.get((difference.program, difference.what))
        why = "" if reason is None else reason.zh if language == "zh" else reason.en
        programs, what = rows.setdefault(why, ([], []))
        for word, words in (
            (difference.program, programs),
            (_WHAT[difference.what].in_language(language), what),
        ):
            if word not in words:
                words.append(word)
    return [
        f"| {'; '.join(programs)} | {', '.join(what)} | {why} |" for why, (programs, what) in rows.items()
    ]
