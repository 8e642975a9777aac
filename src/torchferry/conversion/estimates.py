"""How long a person needs for what the rules report, from estimates.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from torchferry.finding import Finding, Severity
from torchferry.vendors.schema import toml_module

FILE = Path(__file__).with_name("estimates.toml")
_DEFAULT = "default"
_NOTHING = (0, 0)

Minutes = tuple[int, int]  # for the cause, for each place


@cache
def estimates() -> Mapping[str, Mapping[str, Minutes]]:
    """Rule id -> severity -> minutes."""
    tables = toml_module().loads(FILE.read_text("utf-8"))
    return {
        rule: {severity: (first, each) for severity, (first, each) in table.items()}
        for rule, table in tables.items()
    }


def minutes_for(rule: str, severity: Severity) -> Minutes:
    """What a cause and each of its places take; nothing for what is done or only noted."""
    known = estimates()
    general = known[_DEFAULT].get(severity.value, _NOTHING)
    return known.get(rule, {}).get(severity.value, general)


def estimated(finding: Finding) -> Finding:
    """A finding with its effort."""
    first, each = minutes_for(finding.rule, finding.severity)
    return replace(finding, effort=first, effort_each=each) if first or each else finding
