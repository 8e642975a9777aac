"""A page for each rule: why, what it did to its example for every target, and how to turn it off.

The examples of docs/rule_examples.toml are converted here and now, so that a page can't say what its rule does not do.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tools.make_rule_docs import option_of, summary
from tools.website.navigation import DOCS

from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.rule import Rule, all_rules
from torchferry.conversion.settings import Distributed, PassSettings
from torchferry.conversion.target import Target, vendor_target
from torchferry.conversion.targets import portable_target
from torchferry.finding import Finding
from torchferry.report.findings.words import KIND
from torchferry.text import Language, Text
from torchferry.vendors.registry import get_vendor, vendor_names

EXAMPLES = DOCS / "rule_examples.toml"
_ABOUT = Text("About this rule", "说明")
_EXAMPLE = Text("Example", "示例")
_RESULT = Text(
    "What the rule does with this example, for every target. This table is the output of a conversion.",
    "该规则对此示例的处理，覆盖所有目标。本表是实际转换的输出。",
)
_HEAD = Text("Target | Kind | Before → after | Message", "目标 | 类别 | 修改前 → 修改后 | 说明")
_ALL = Text("all", "全部")
_NOTHING = Text("No finding for: {names}.", "以下目标没有相关结果：{names}。")
_TURN_ON = Text("Turn it on", "启用")
_TURNED_ON = Text("This rule works only with `{option}`.", "仅在使用 `{option}` 时启用。")
_TURN_OFF = Text("Turn it off", "关闭")
_TURNED_OFF = Text(
    "On one line, with a comment at its end: `# ferry: ignore[{id}]`. In a whole run, with `--ignore {id}`. To run "
    "this rule alone, use `--select {id}`.",
    "只在一行关闭：在行尾写注释 `# ferry: ignore[{id}]`。整次运行关闭：使用 `--ignore {id}`。只运行这一条规则：使用 "
    "`--select {id}`。",
)


def pages(language: Language) -> dict[str, str]:
    """Path -> text of every rule's page."""
    examples = read_examples()
    return {f"rules/{rule.id}.md": page(rule, examples[rule.id], language) for rule in all_rules()}


def page(rule: Rule, example: dict[str, Any], language: Language) -> str:
    """The page of one rule."""
    lines = [
        f"# {rule.id} {rule.name}",
        "",
        summary(rule, language) + ("." if language == "en" else "。"),
        "",
    ]
    lines += [f"## {_ABOUT.in_language(language)}", "", example[language], ""]
    if "code" in example:
        lines += [
            f"## {_EXAMPLE.in_language(language)}",
            "",
            f"```{fence(example)}",
            example["code"].strip("\n"),
            "```",
        ]
        lines += ["", _RESULT.in_language(language), "", *table(rule, language)]
    if rule.option:
        on = _TURNED_ON.format(option=option_of(rule)).in_language(language)
        lines += [f"## {_TURN_ON.in_language(language)}", "", on, ""]
    off = _TURNED_OFF.format(id=rule.id).in_language(language)
    return "\n".join([*lines, f"## {_TURN_OFF.in_language(language)}", "", off, ""])


def targets() -> list[Target]:
    """Every built-in vendor, and portable code."""
    return [*(vendor_target(get_vendor(name)) for name in vendor_names()), portable_target()]


@cache
def read_examples() -> dict[str, dict[str, Any]]:
    """Rule id -> its example."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    examples: dict[str, dict[str, Any]] = toml.loads(EXAMPLES.read_text("utf-8"))
    ids = {rule.id for rule in all_rules()}
    if missing := sorted(ids - examples.keys()):
        sys.exit(f"{EXAMPLES.name}: no example for {', '.join(missing)}")
    if unknown := sorted(examples.keys() - ids):
        sys.exit(f"{EXAMPLES.name}: no rule {', '.join(unknown)}")
    return examples


@cache
def outcomes(rule: str) -> dict[str, list[Finding]]:
    """Target -> what the rule with this id says about its example there."""
    return {target.name: outcome(rule, read_examples()[rule], target) for target in targets()}


def outcome(rule: str, example: dict[str, Any], target: Target) -> list[Finding]:
    """What the rule with this id says about an example."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / example.get("file", "train.py")
        file.parent.mkdir(exist_ok=True)
        encoding = {"undecodable": "utf-8"}.get(example.get("encoding", ""), example.get("encoding", "utf-8"))
        data = example["code"].lstrip("\n").encode(encoding)
        file.write_bytes(data.replace("é".encode(), b"\x81\xff") if "encoding" in example else data)
        settings = PassSettings(Distributed(example["main"])) if "main" in example else PassSettings()
        plan = Plan(target, options=frozenset(example.get("options", ())), settings=settings)
        findings = examine_project(Path(folder), plan).report("scan").findings
    return [finding for finding in findings if finding.rule == rule]


def table(rule: Rule, language: Language) -> list[str]:
    """What each target makes of the example; targets that say the same share a row."""
    found = outcomes(rule.id)
    rows: dict[str, list[str]] = {}
    for target, findings in found.items():
        for finding in findings:
            rows.setdefault(row(finding, language), []).append(target)
    lines: list[str] = []
    if rows:
        lines += [f"| {_HEAD.in_language(language)} |", "|---|---|---|---|"]
        lines += [f"| {listed(who, [*found], language)} | {text} |" for text, who in rows.items()]
        lines.append("")
    if silent := [target for target, findings in found.items() if not findings]:
        lines += [_NOTHING.format(names=listed(silent, [], language)).in_language(language), ""]
    return lines


def listed(some: list[str], every: list[str], language: Language) -> str:
    return _ALL.in_language(language) if some == every else (", " if language == "en" else "、").join(some)


def row(finding: Finding, language: Language) -> str:
    code = cell(finding.before, True)
    if finding.after:
        code = f"{code} → {cell(finding.after, True)}".strip()
    kind = KIND[finding.kind].name.in_language(language)
    return f"{kind} | {code} | {cell(finding.message.in_language(language))}"


def cell(text: str, is_code: bool = False) -> str:
    """Text for a table: one line, no bars."""
    lines = [line.strip() for line in text.strip().split("\n")]
    text = " ⏎ ".join(lines).replace("|", "\\|")
    return f"`{text}`" if is_code and text else text


def fence(example: dict[str, Any]) -> str:
    file = Path(example.get("file", "a.py"))
    known = {
        ".cu": "cuda",
        ".sh": "bash",
        ".yaml": "yaml",
        ".ipynb": "json",
        ".txt": "text",
        "": file.name.lower(),
    }
    return known.get(file.suffix, "python")
