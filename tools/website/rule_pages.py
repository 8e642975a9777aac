"""A page for each rule: why, what it does with its example for every target, the effort, and how to turn it off.

The examples are converted here and now, so that a page can't say what its rule does not do.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tools.make_rule_docs import option_of, summary

from torchferry.conversion.estimates import minutes_for
from torchferry.conversion.examples import RuleExample, rule_examples, targets
from torchferry.conversion.rule import Rule, all_rules
from torchferry.finding import Finding, Severity
from torchferry.report.findings.words import SEVERITY
from torchferry.report.findings.work_list import OPEN
from torchferry.text import Language, Text

_ABOUT = Text("About this rule", "说明")
_EXAMPLE = Text("Example", "示例")
_RESULT = Text(
    "What the rule does with this example, for every target. This table is the output of a conversion.",
    "该规则对此示例的处理，覆盖所有目标。本表是实际转换的输出。",
)
_HEAD = Text("Target | Severity | Before → after | Message", "目标 | 严重程度 | 修改前 → 修改后 | 说明")
_ALL = Text("all", "全部")
_NOTHING = Text("No finding for: {names}.", "以下目标没有相关结果：{names}。")
_EFFORT = Text("Estimated effort", "估计的工作量")
_EFFORT_HEAD = Text(
    "Severity | Minutes for the cause | Minutes for each place", "严重程度 | 每个原因（分钟） | 每处（分钟）"
)
_TURN_ON = Text("Turn it on", "启用")
_TURNED_ON = Text("This rule works only with `{option}`.", "仅在使用 `{option}` 时启用。")
_TURN_OFF = Text("Turn it off", "关闭")
_TURNED_OFF = Text(
    "On one line, with a comment at its end: `# ferry: ignore[{id}]`. In a whole run, with `--ignore {id}`. To run "
    "this rule alone, use `--select {id}`.",
    "只在一行关闭：在行尾写注释 `# ferry: ignore[{id}]`。整次运行关闭：使用 `--ignore {id}`。只运行这一条规则：使用 "
    "`--select {id}`。",
)
_LANGUAGES = {".cu": "cuda", ".sh": "bash", ".yaml": "yaml", ".ipynb": "json", ".txt": "text"}


def pages(language: Language) -> dict[str, str]:
    """Path -> text of every rule's page."""
    return {f"rules/{rule.id}.md": page(rule, rule_examples()[rule.id], language) for rule in all_rules()}


def page(rule: Rule, example: RuleExample, language: Language) -> str:
    """The page of one rule."""
    full_stop = "." if language == "en" else "。"
    lines = [f"# {rule.id} {rule.name}", "", summary(rule, language).rstrip(full_stop) + full_stop, ""]
    lines += [f"## {_ABOUT.in_language(language)}", "", example.about.in_language(language), ""]
    if example.code:
        lines += [
            f"## {_EXAMPLE.in_language(language)}",
            "",
            f"```{_fence(example)}",
            example.code.strip("\n"),
            "```",
        ]
        lines += ["", _RESULT.in_language(language), "", *_table(rule, language), *_efforts(rule, language)]
    if rule.option:
        on = _TURNED_ON.format(option=option_of(rule)).in_language(language)
        lines += [f"## {_TURN_ON.in_language(language)}", "", on, ""]
    off = _TURNED_OFF.format(id=rule.id).in_language(language)
    return "\n".join([*lines, f"## {_TURN_OFF.in_language(language)}", "", off, ""])


@cache
def _outcomes(rule: str) -> dict[str, list[Finding]]:
    """Target -> what the rule with this id says about its example there."""
    known = next(each for each in all_rules() if each.id == rule)
    return {target.name: rule_examples()[rule].findings(known, target) for target in targets()}


def _table(rule: Rule, language: Language) -> list[str]:
    """What each target makes of the example; targets that say the same share a row."""
    found = _outcomes(rule.id)
    rows: dict[str, list[str]] = {}
    for target, findings in found.items():
        for finding in findings:
            rows.setdefault(_row(finding, language), []).append(target)
    lines: list[str] = []
    if rows:
        lines += [f"| {_HEAD.in_language(language)} |", "|---|---|---|---|"]
        lines += [f"| {_listed(who, [*found], language)} | {text} |" for text, who in rows.items()]
        lines.append("")
    if silent := [target for target, findings in found.items() if not findings]:
        lines += [_NOTHING.format(names=_listed(silent, [], language)).in_language(language), ""]
    return lines


def _listed(some: list[str], every: list[str], language: Language) -> str:
    return _ALL.in_language(language) if some == every else (", " if language == "en" else "、").join(some)


def _row(finding: Finding, language: Language) -> str:
    code = _cell(finding.before, True)
    if finding.after:
        code = f"{code} → {_cell(finding.after, True)}".strip()
    severity = SEVERITY[finding.severity].name.in_language(language)
    return f"{severity} | {code} | {_cell(finding.message.in_language(language))}"


def _cell(text: str, is_code: bool = False) -> str:
    """Text for a table: one line, no bars."""
    lines = [line.strip() for line in text.strip().split("\n")]
    text = " ⏎ ".join(lines).replace("|", "\\|")
    return f"`{text}`" if is_code and text else text


def _fence(example: RuleExample) -> str:
    file = Path(example.file)
    return _LANGUAGES.get(file.suffix, "python") if file.suffix else file.name.lower()


def _efforts(rule: Rule, language: Language) -> list[str]:
    severities = {finding.severity for findings in _outcomes(rule.id).values() for finding in findings}
    rows = [_effort(rule.id, severity, language) for severity in _open(severities)]
    if not rows:
        return []
    head = [f"| {_EFFORT_HEAD.in_language(language)} |", "|---|---:|---:|"]
    return [f"## {_EFFORT.in_language(language)}", "", *head, *rows, ""]


def _open(severities: Iterable[Severity]) -> list[Severity]:
    found = set(severities)
    return [severity for severity in OPEN if severity in found]


def _effort(rule: str, severity: Severity, language: Language) -> str:
    first, each = minutes_for(rule, severity)
    return f"| {SEVERITY[severity].name.in_language(language)} | {first} | {each} |"
