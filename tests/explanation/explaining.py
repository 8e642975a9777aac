"""How the tests have a text explained."""

from __future__ import annotations

from functools import cache

from torchferry.explanation.explaining import explain_text
from torchferry.explanation.model import Explanation
from torchferry.explanation.rules import RuleBook, rule_book


@cache
def all_rules() -> RuleBook:
    return rule_book()


def explained(text: str) -> Explanation:
    return explain_text(text, all_rules(), "train.log")


def cause(text: str) -> str:
    """The id of the rule that explains the text; "?" for an unknown error, "" for none."""
    found = explained(text).cause
    return "" if found is None else found.id or "?"


def ids(text: str) -> list[str]:
    """The rules of all findings, the cause first."""
    return [finding.id for finding in explained(text).ordered]
