"""Writes docs/en/rules/index.md and docs/zh/rules/index.md from the rules and the examples beside them; `make docs` calls it.

The examples are converted here and now, for every target, so that the pages can't say what the rules don't do.
"""

from __future__ import annotations

import sys
from pathlib import Path

from torchferry.conversion.examples import RuleExample, rule_examples, targets
from torchferry.conversion.rule import Rule, all_rules
from torchferry.finding import Finding
from torchferry.report.findings.words import SEVERITY
from torchferry.text import Language, Text

DOCS = Path(__file__).resolve().parent.parent / "docs"

TITLE = Text("Rules", "转换规则")
INTRO = Text(
    "Every rule has an id. `--select` and `--ignore` take ids or their beginnings (`TF1`), "
    "`# ferry: ignore[TF105]` at the end of a line turns a rule off there, and `ferry rules TF105` explains one.",
    "每条规则都有编号。`--select` 和 `--ignore` 接受编号或编号前缀（如 `TF1`）；"
    "在行尾写 `# ferry: ignore[TF105]` 可在该行关闭规则；`ferry rules TF105` 显示单条规则的说明。",
)
MADE = Text(
    "This page is made by `make docs`: the tables show what the rules did to the examples, for every target.",
    "本页由 `make docs` 生成：表格是各规则对示例的实际转换结果，覆盖所有目标。",
)
HEAD = Text("Target | Severity | Before → after | Message", "目标 | 严重程度 | 修改前 → 修改后 | 说明")
ALL = Text("all", "全部")
NOTHING = Text("Nothing is reported for: {names}.", "以下目标没有相关结果：{names}。")


def read_examples() -> dict[str, RuleExample]:
    """Rule id -> its example."""
    examples = rule_examples()
    ids = {rule.id for rule in all_rules()}
    if missing := sorted(ids - examples.keys()):
        sys.exit(f"examples.toml: no example for {', '.join(missing)}")
    if unknown := sorted(examples.keys() - ids):
        sys.exit(f"examples.toml: no rule {', '.join(unknown)}")
    return examples


def section(rule: Rule, example: RuleExample, language: Language) -> list[str]:
    """The text about one rule."""
    lines = [f"## {rule.id} {rule.name}", "", capital(rule.summary.in_language(language)) + stop(language)]
    lines += ["", example.about.in_language(language), ""]
    if not example.code:
        return lines
    lines += [f"```{fence(example)}", example.code.strip("\n"), "```", ""]
    lines += table(rule, example, language)
    return lines


def table(rule: Rule, example: RuleExample, language: Language) -> list[str]:
    """What each target makes of the example; targets that say the same share a row."""
    rows: dict[str, list[str]] = {}
    silent: list[str] = []
    names = [target.name for target in targets()]
    for target in targets():
        findings = example.findings(rule, target)
        if not findings:
            silent.append(target.name)
        for finding in findings:
            rows.setdefault(row(finding, language), []).append(target.name)
    lines: list[str] = []
    if rows:
        lines += [f"| {HEAD.in_language(language)} |", "|---|---|---|---|"]
        lines += [f"| {listed(who, names, language)} | {text} |" for text, who in rows.items()]
        lines.append("")
    if silent:
        lines += [NOTHING.format(names=listed(silent, [], language)).in_language(language), ""]
    return lines


def listed(some: list[str], every: list[str], language: Language) -> str:
    return ALL.in_language(language) if some == every else (", " if language == "en" else "、").join(some)


def row(finding: Finding, language: Language) -> str:
    code = cell(finding.before, True)
    if finding.after:
        code = f"{code} → {cell(finding.after, True)}".strip()
    kind = SEVERITY[finding.severity].name.in_language(language)
    return f"{kind} | {code} | {cell(finding.message.in_language(language))}"


def cell(text: str, is_code: bool = False) -> str:
    """Text for a table: one line, no bars."""
    lines = [line.strip() for line in text.strip().split("\n")]
    text = " ⏎ ".join(lines).replace("|", "\\|")
    return f"`{text}`" if is_code and text else text


def fence(example: RuleExample) -> str:
    file = Path(example.file)
    known = {
        ".cu": "cuda",
        ".sh": "bash",
        ".yaml": "yaml",
        ".ipynb": "json",
        ".txt": "text",
        "": file.name.lower(),
    }
    return known.get(file.suffix, "python")


def capital(text: str) -> str:
    is_word = text.partition(" ")[0].strip(",:").isalpha()
    return text[:1].upper() + text[1:] if is_word else text


def stop(language: Language) -> str:
    return "." if language == "en" else "。"


def page(language: Language) -> str:
    """The whole page."""
    examples = read_examples()
    lines = [f"# {TITLE.in_language(language)}", ""]
    lines += [INTRO.in_language(language), "", MADE.in_language(language), ""]
    for rule in all_rules():
        lines += section(rule, examples[rule.id], language)
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> int:
    """Write both pages."""
    languages: tuple[Language, ...] = ("en", "zh")
    for language in languages:
        (DOCS / language / "rules/index.md").write_text(page(language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
