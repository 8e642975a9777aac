"""An example of each rule (rules/examples.toml), what it is about in both languages, and what each target makes of it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.rule import Rule, all_rules
from torchferry.conversion.settings import Distributed, PassSettings
from torchferry.conversion.target import Target, vendor_target
from torchferry.conversion.targets import portable_target
from torchferry.finding import NO_TEXT, Finding, RuleDoc
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, vendor_names
from torchferry.vendors.schema import toml_module

FILE = Path(__file__).with_name("rules") / "examples.toml"
_UNDECODABLE = "undecodable"


@dataclass(frozen=True)
class RuleExample:
    """A few lines that a rule has something to say about."""

    about: Text  # what the rule does and what it leaves alone
    code: str = ""  # empty: the rule is about what no text can show
    file: str = "train.py"
    encoding: str = "utf-8"
    options: tuple[str, ...] = ()  # opt-in options without which the rule is silent
    main: str = ""  # the script that --distributed starts from

    def findings(self, rule: Rule, target: Target) -> list[Finding]:
        """What the rule says about the example on its way to a target."""
        if not self.code:
            return []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / self.file
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(self._bytes())
            settings = PassSettings(Distributed(self.main)) if self.main else PassSettings()
            plan = Plan(target, options=frozenset(self.options), settings=settings)
            report = examine_project(Path(folder), plan).report("scan")
        return [finding for finding in report.findings if finding.rule == rule.id]

    def _bytes(self) -> bytes:
        is_broken = self.encoding == _UNDECODABLE
        data = self.code.lstrip("\n").encode("utf-8" if is_broken else self.encoding)
        return data.replace("é".encode(), b"\x81\xff") if self.encoding != "utf-8" else data


def targets() -> list[Target]:
    """Every built-in vendor, and portable code."""
    return [*(vendor_target(get_vendor(name)) for name in vendor_names()), portable_target()]


@cache
def rule_examples() -> dict[str, RuleExample]:
    """Rule id -> its example."""
    tables = toml_module().loads(FILE.read_text("utf-8"))
    return {rule: _example(table) for rule, table in tables.items()}


def _example(table: dict[str, Any]) -> RuleExample:
    given = {name: value for name, value in table.items() if name not in ("en", "zh")}
    given["options"] = tuple(given.get("options", ()))
    return RuleExample(about=Text(table["en"], table["zh"]), **given)


def rule_docs() -> dict[str, RuleDoc]:
    """Rule id -> what the rule does, for reports."""
    examples = rule_examples()
    return {
        rule.id: RuleDoc(rule.summary, examples[rule.id].about if rule.id in examples else NO_TEXT)
        for rule in all_rules()
    }
