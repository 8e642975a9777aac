"""What a caller may choose about a rendering; no choice changes what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchferry.text import Language, Text

RuleDocs = Mapping[str, Text]  # rule id -> one sentence that says what the rule is about


@dataclass(frozen=True)
class Options:
    """How to show a report."""

    language: Language = "en"
    verbose: bool = False
    rule_docs: RuleDocs = field(default_factory=dict)

    def say(self, text: Text) -> str:
        """The text in the reader's language."""
        return text.in_language(self.language)

    def about_rule(self, rule: str) -> str:
        """What is known about a rule, in the reader's language; may be empty."""
        doc = self.rule_docs.get(rule)
        return self.say(doc) if doc else ""
