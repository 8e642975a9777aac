"""Shorthand for the tests of rule files: write one, convert a module with it, twice."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from tests.conversion.rewriting import target
from torchferry.conversion.custom.json_format import load_custom_rules
from torchferry.conversion.custom.model import CustomRules
from torchferry.conversion.project import FileOutcome, Plan, examine_project
from torchferry.finding import Finding, Kind
from torchferry.outcome import FileStatus

KNOWN = ("ascend", "cambricon", "portable")


def loaded(folder: Path, rules: Any) -> CustomRules:
    """The rules of a file: TOML text, JSON text, or what stands under "rules" in JSON."""
    is_toml = isinstance(rules, str) and not rules.lstrip().startswith(("{", "["))
    is_toml = is_toml or (isinstance(rules, str) and "[[rule]]" in rules)
    path = folder / ("rules.toml" if is_toml else "rules.json")
    path.write_text(rules if isinstance(rules, str) else json.dumps({"rules": rules}), "utf-8")
    return load_custom_rules(path, vendors=KNOWN)


def outcome(folder: Path, rules: CustomRules, source: str, to: str = "ascend") -> FileOutcome | None:
    """What becomes of a module; None if nobody had anything to say about it."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "module.py").write_bytes(source.encode())
    outcomes = examine_project(project, Plan(target(to), custom=rules)).outcomes
    assert all(item.record.status is not FileStatus.FAILED for item in outcomes), outcomes[0].record
    return outcomes[0] if outcomes else None


def converted(folder: Path, rules: Any, source: str, to: str = "ascend") -> str:
    """A module after its conversion; converting it again must change nothing and say so."""
    custom, text = loaded(folder, rules), textwrap.dedent(source)
    first = outcome(folder, custom, text, to)
    result = text if first is None or first.new_data is None else first.new_data.decode()
    again = outcome(folder, custom, result, to)
    assert again is None or again.new_data is None
    assert not [item for item in findings_of(again) if item.kind is Kind.CHANGE]
    return result


def findings_of(result: FileOutcome | None) -> tuple[Finding, ...]:
    return result.findings if result else ()


def said(folder: Path, rules: Any, source: str, to: str = "ascend") -> list[tuple[str, str, int, str]]:
    """(rule, kind, line, message) of the user's rules, in order."""
    result = outcome(folder, loaded(folder, rules), textwrap.dedent(source), to)
    found = [item for item in findings_of(result) if item.rule.startswith("USER")]
    return [(item.rule, item.kind.value, item.line, item.message.en) for item in found]
