"""The rules of a run, with what can be worked out about them once for all files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from torchferry.convert.rule import Rule


class RuleSet:
    """A selection of rules."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        # The first answer counts: the user's, then that of a rule which was asked for, then the others'.
        renaming = [rule for rule in self.rules if rule.rename is not None]
        self.renaming = tuple(sorted(renaming, key=lambda rule: (not rule.is_users, not rule.option)))
        self.repairing = tuple(rule for rule in self.rules if rule.repair is not None)
        self.restructuring = tuple(rule for rule in self.rules if rule.restructure is not None)
        self.finishing = tuple(rule for rule in self.rules if rule.finish is not None)
        self.tracked = frozenset[str]().union(*(rule.tracks for rule in self.rules))
        self.imports = frozenset(name.encode() for rule in self.rules for name in rule.imports)

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The opt-in options whose rules are here, those of passes first."""
        chosen = sorted(
            (rule for rule in self.rules if rule.option), key=lambda rule: rule.restructure is None
        )
        return tuple(dict.fromkeys(rule.option for rule in chosen))

    @cached_property
    def users(self) -> RuleSet:
        """The user's own rules."""
        return RuleSet(rule for rule in self.rules if rule.is_users)

    @cached_property
    def built_in(self) -> RuleSet:
        """All but the user's own."""
        return RuleSet(rule for rule in self.rules if not rule.is_users)

    @cached_property
    def words(self) -> tuple[bytes, ...]:
        """The words that make a file worth reading, whatever else it holds."""
        return _needed(rule for rule in self.rules if rule.worth is None)

    @cached_property
    def line_words(self) -> tuple[bytes, ...]:
        """The words that make a line worth reading; passes find their lines themselves."""
        return _needed(rule for rule in self.rules if rule.restructure is None and rule.worth is None)

    def is_called_for(self, data: bytes) -> bool:
        """Whether a file holds a word that makes it worth reading."""
        for word in self.words:
            if word in data:
                return True
        return any(rule.worth is not None and rule.is_called_for(data) for rule in self.rules)

    @cached_property
    def import_pattern(self) -> re.Pattern[bytes]:
        """Finds the imports that make a file worth reading, where one begins a line; others are seen when read."""
        if not self.imports:
            return re.compile(rb"(?!)")
        packages = b"|".join(re.escape(name) for name in sorted(self.imports))
        return re.compile(rb"\n[ \t]*(?:import|from)[ \t]+(?:" + packages + rb")\b")

    @cached_property
    def by_node(self) -> dict[type[ast.AST], tuple[Rule, ...]]:
        """The rules that ask for a type of node."""
        types = {node_type for rule in self.rules for node_type in rule.nodes}
        return {
            node_type: tuple(rule for rule in self.rules if node_type in rule.nodes) for node_type in types
        }


def _needed(rules: Iterable[Rule]) -> tuple[bytes, ...]:
    """The triggers of rules, short ones first: most files that hold any hold `cuda`. Those with another inside go."""
    words = {word.encode() for rule in rules for word in rule.triggers}
    return tuple(
        sorted((word for word in words if words.isdisjoint(_shorter_parts(word))), key=lambda w: (len(w), w))
    )


def _shorter_parts(word: bytes) -> Iterator[bytes]:
    """Everything that a word contains but itself."""
    for start in range(len(word)):
        for end in range(start + 1, len(word) + 1):
            if end - start < len(word):
                yield word[start:end]
