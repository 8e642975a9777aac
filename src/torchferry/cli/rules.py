"""`ferry rules`: the conversion rules, or one of them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import show
from torchferry.conversion.estimates import minutes_for
from torchferry.conversion.examples import rule_examples, targets
from torchferry.conversion.rule import Rule, all_rules
from torchferry.errors import FerryError
from torchferry.finding import Finding, Severity, sentences
from torchferry.report.findings.words import DO, SEVERITY, WHY, work_time
from torchferry.report.findings.work_list import OPEN
from torchferry.report.formats import Reports
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

_WIDTH = 100
EXAMPLE, ON_TARGETS = Text("Example", "示例"), Text("On each target", "各目标上")
_EFFORT = Text("Estimated effort", "估计的工作量")
_MINUTES = Text(
    "{severity}: {first} for the cause, {each} min for each place",
    "{severity}：每个原因 {first}，每处 {each} 分钟",
)
IGNORE = Text("To ignore it", "忽略方法")
HOW_TO_IGNORE = Text(
    "write `# ferry: ignore[{rule}]` at the end of a line, or pass `--ignore {rule}`",
    "在行尾写 `# ferry: ignore[{rule}]`，或传入 `--ignore {rule}`",
)
_SILENT = Text("nothing reported", "没有报告")
_OPTION = Text("Only with --{option}.", "仅在使用 --{option} 时生效。")


ABOUT = About(
    Text(
        "Every finding of `ferry scan` and `ferry convert` names the rule that made it, such as TF105.",
        "`ferry scan` 和 `ferry convert` 的每条发现都注明产生它的规则，例如 TF105。",
    ),
    (
        Example("ferry rules", Text("List all rules", "列出所有规则")),
        Example("ferry rules TF105", Text("Explain one rule", "解释一条规则")),
    ),
    page="rules/index.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry rules`."""
    text = Text(
        "Id of a rule, for example TF105 (default: list all)", "规则编号，例如 TF105（默认：列出全部）"
    )
    parser.add("rule", nargs="?", metavar="RULE", text=text)
    options.add_format(parser, options.SUMMARY_FORMATS)
    options.add_outputs(parser, ".txt, .md, .csv, .xlsx, .html")
    options.add_language(parser)


@dataclass(frozen=True)
class ToldRule:
    """A rule as `ferry rules --json` has it."""

    id: str
    name: str
    summary: Text
    option: str  # of `ferry convert` without which it does nothing; "": none is needed


@dataclass(frozen=True)
class ToldRules:
    """Those that were asked for."""

    rules: tuple[ToldRule, ...]


REPORTS: Reports[ToldRules] = Reports({"json": f"{__name__}:to_json"})


def to_json(told: ToldRules, _options: object) -> str:
    """The whole list."""
    from torchferry.report.json import document

    return document("torchferry-rules", told)


def _told(rules: Iterable[Rule]) -> ToldRules:
    return ToldRules(
        tuple(ToldRule(each.id, each.name, each.summary, each.option.replace("_", "-")) for each in rules)
    )


def _found(name: str) -> Rule:
    found = next((rule for rule in all_rules() if rule.id == name.upper()), None)
    if found is None:
        said = Text(
            f"no rule {name}; `ferry rules` lists them", f"没有规则 {name}；`ferry rules` 列出全部规则"
        )
        raise FerryError(said)
    return found


def run(args: argparse.Namespace) -> int:
    """Print the table, or one rule."""
    language = options.language_of(args)
    rules = all_rules() if args.rule is None else [_found(args.rule)]
    _write_files(args, rules)
    if args.format == "json":
        show(REPORTS, _told(rules), args)
    elif args.rule is not None:
        print("\n".join(explanation(rules[0], language)))
    else:
        for rule in rules:
            option = f" [--{rule.option.replace('_', '-')}]" if rule.option else ""
            print(f"{rule.id}  {rule.name:<24} {rule.summary.in_language(language)}{option}")
    return 0


def _write_files(args: argparse.Namespace, rules: Sequence[Rule]) -> None:
    if not args.output:
        return
    from torchferry.cli.output import check_reports, report_options
    from torchferry.cli.rule_pages import REPORTS

    check_reports(REPORTS, args.output)
    for path in args.output:
        REPORTS.write(rules, path, report_options(args))


def explanation(rule: Rule, language: Language) -> list[str]:
    """What the rule does and why, its example on each target, what it costs, how to ignore it."""
    example = rule_examples()[rule.id]
    found = {target.name: example.findings(rule, target) for target in targets()}
    lines = [f"{rule.id} {rule.name}", "", sentences(rule.summary).in_language(language)]
    if rule.option:
        lines.append(_OPTION.format(option=rule.option.replace("_", "-")).in_language(language))
    lines += ["", *_wrapped(example.about, language)]
    if example.code:
        lines += ["", f"{EXAMPLE.in_language(language)} ({example.file})", ""]
        lines += [f"    {line}" for line in example.code.strip("\n").split("\n")]
        lines += ["", ON_TARGETS.in_language(language), *_on_targets(found, language)]
    every = [finding for each in found.values() for finding in each]
    lines += _recipe(every, language)
    lines += _efforts(rule, {finding.severity for finding in every}, language)
    ignore = HOW_TO_IGNORE.format(rule=rule.id).in_language(language)
    return [*lines, "", f"{IGNORE.in_language(language)}: {ignore}"]


def _wrapped(text: Text, language: Language) -> list[str]:
    """English in lines of some width; Chinese has no blanks to break at, so the terminal does it."""
    said = text.in_language(language)
    return textwrap.wrap(said, _WIDTH, break_on_hyphens=False) if language == "en" else [said]


def _on_targets(found: Mapping[str, list[Finding]], language: Language) -> list[str]:
    """What the rule says about its example; targets for which it says the same share a paragraph."""
    said: dict[tuple[str, ...], list[str]] = {}
    for name, findings in found.items():
        words = tuple(_line(finding, language) for finding in findings)
        said.setdefault(words or (_SILENT.in_language(language),), []).append(name)
    lines: list[str] = []
    for words, names in said.items():
        lines += ["", f"  {', '.join(names)}", *(f"    {line}" for line in words)]
    return lines


def _line(finding: Finding, language: Language) -> str:
    severity = SEVERITY[finding.severity].name.in_language(language)
    before, after = one_line(finding.before), one_line(finding.after)
    code = f"{before} → {after}".strip() if after else before
    return f"{severity}: {code}" if after else f"{severity}: {code} ({finding.title.in_language(language)})"


def _recipe(findings: Iterable[Finding], language: Language) -> list[str]:
    """Why and what to do, for the first place that asks something of the user."""
    first = next((finding for finding in findings if finding.do.en), None)
    if first is None:
        return []
    lines: list[str] = []
    for label, text in ((WHY, first.why), (DO, first.do)):
        if text.en:
            lines += ["", f"{label.in_language(language)} ({first.vendor})", *_wrapped(text, language)]
    return lines


def _efforts(rule: Rule, severities: Container[Severity], language: Language) -> list[str]:
    rows = []
    for severity in OPEN:
        if severity in severities:
            first, each = minutes_for(rule.id, severity)
            values = {"severity": SEVERITY[severity].name, "first": work_time(first), "each": each}
            rows.append(f"  {_MINUTES.format(**values).in_language(language)}")
    return ["", _EFFORT.in_language(language), *rows] if rows else []
