"""Explains the end of a program that `ferry run` has started: its exception, or the signal that ended it."""

from __future__ import annotations

from pathlib import Path

from torchferry.explain.explaining import explain_text
from torchferry.explain.report.words import cause_of, remedy_of
from torchferry.explain.rules import RuleBook, rule_book
from torchferry.text import Text
from torchferry.vendors.error_patterns import load_errors
from torchferry.vendors.model import Vendor

# Exit codes as shells count them -> what a shell prints for them, which the rules know.
_SIGNALS = {134: "Aborted", 135: "Bus error", 137: "Killed", 139: "Segmentation fault"}
_SAID = Text(
    "{cause}; what to do: {remedy} (rule {rule})",
    "{cause}；处理方法：{remedy}（规则 {rule}）",
)
_FIRST = Text("rank {rank} failed first; {said}", "rank {rank} 最先失败；{said}")


def explain_exception(traceback: str, vendor: Vendor | None) -> Text | None:
    """One sentence about an exception as Python prints it; None if no rule knows it. Without a vendor by all rules."""
    explanation = explain_text(traceback, _book(vendor))
    cause, launched = explanation.cause, explanation.logs[0].launched
    if cause is None or cause.pattern is None:
        return None
    said = _SAID.format(cause=cause_of(cause), remedy=remedy_of(cause), rule=cause.id)
    return said if launched is None else _FIRST.format(rank=launched.rank, said=said)


def explain_exit(code: int, vendor: Vendor) -> Text | None:
    """One sentence about a program that a signal has ended; None for all other exit codes."""
    word = _SIGNALS.get(code)
    return None if word is None else explain_exception(word, vendor)


def _book(vendor: Vendor | None) -> RuleBook:
    return rule_book() if vendor is None else RuleBook([load_errors(Path(vendor.folder))])
