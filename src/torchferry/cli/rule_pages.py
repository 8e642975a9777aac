"""Files of `ferry rules -o FILE`: all rules in a table, or one with its example on each target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchferry.cli import rules as printed
from torchferry.conversion.examples import RuleExample, rule_examples, targets
from torchferry.conversion.rule import Rule
from torchferry.finding import sentences
from torchferry.report.findings.words import SEVERITY
from torchferry.report.formats import Options, Reports
from torchferry.report.page import Cell, Column, Field, Page, Table
from torchferry.report.safe import one_line
from torchferry.text import Text

REPORTS: Reports[Sequence[Rule]] = Reports(page=f"{__name__}:page_of")
_TITLE, _RULES = Text("Conversion rules", "转换规则"), Text("Rules", "规则")
_COUNT = Text("{count} rules", "{count} 条规则")
_RULE, _DOES = Column(Text("rule", "规则"), is_whole=True), Column(Text("what it does", "作用"))
_NAME, _OPTION = Column(Text("name", "名称"), is_whole=True), Column(Text("option", "选项"), is_whole=True)
_TARGET, _VERDICT = (
    Column(Text("target", "目标"), is_whole=True),
    Column(Text("severity", "级别"), is_whole=True),
)
_CHANGE = Column(Text("before and after", "转换前后"), kind="code")
_WHAT_TO_DO = Column(Text("what to do", "处理方法"))
_CODE = Column(Text("code", "代码"), kind="code")


def page_of(rules: Sequence[Rule], options: Options) -> Page:
    """A row for each rule; of one alone its example, and what it says about that for each target."""
    return _of_one(rules[0]) if len(rules) == 1 else _of_all(rules)


def _of_all(rules: Sequence[Rule]) -> Page:
    examples = rule_examples()
    rows = tuple(
        (
            Cell(rule.id, is_code=True),
            Cell(rule.name, is_code=True),
            Cell(examples[rule.id].about if rule.id in examples else sentences(rule.summary)),
            Cell(f"--{rule.option.replace('_', '-')}" if rule.option else "", is_code=True),
        )
        for rule in rules
    )
    table = Table(_RULES, (_RULE, _NAME, _DOES, _OPTION), rows)
    return Page(_TITLE, ((_COUNT.format(count=len(rows)), ""),), (table,))


def _of_one(rule: Rule) -> Page:
    example = rule_examples()[rule.id]
    title = Text(f"{rule.id} {rule.name}", f"{rule.id} {rule.name}")
    said = [(sentences(rule.summary), ""), (example.about, "")]
    ignore = printed.HOW_TO_IGNORE.format(rule=rule.id)
    note = Text(f"{printed.IGNORE.en}: {ignore.en}", f"{printed.IGNORE.zh}：{ignore.zh}")
    return Page(title, tuple(said), tuple(_tables(rule, example)), (note,))


def _tables(rule: Rule, example: RuleExample) -> Iterator[Table]:
    code = Table(
        Text(f"{printed.EXAMPLE.en} ({example.file})", f"{printed.EXAMPLE.zh}（{example.file}）"),
        (_CODE,),
        ((Cell(example.code.strip("\n"), is_code=True),),) if example.code else (),
    )
    rows: list[tuple[Field, ...]] = []
    for target in targets():
        for finding in example.findings(rule, target):
            change = " → ".join(filter(None, (one_line(finding.before), one_line(finding.after))))
            grade = SEVERITY[finding.severity]
            rows.append((Cell(target.name, is_code=True), Cell(grade.name, grade.style), change, finding.do))
    yield from (code, Table(printed.ON_TARGETS, (_TARGET, _VERDICT, _CHANGE, _WHAT_TO_DO), tuple(rows)))
