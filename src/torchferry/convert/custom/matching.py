"""Which of many rules speak about a name or a call: looked up, not tried one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from torchferry.convert.custom.model import UserRule
from torchferry.convert.site import Site
from torchferry.finding import Kind
from torchferry.source.names import last_name

Numbered = tuple[int, UserRule]  # the number is the rule's place among all


class RuleIndex:
    """Rules by the names that they speak about."""

    def __init__(self, rules: Sequence[UserRule]) -> None:
        self._full: dict[str, list[Numbered]] = {}
        self._last: dict[str, list[Numbered]] = {}
        for numbered in enumerate(rules):
            pattern = numbered[1].match
            if pattern.is_full:
                self._full.setdefault(pattern.name, []).append(numbered)
            if pattern.is_last:
                self._last.setdefault(pattern.name, []).append(numbered)

    def renaming(self, qualified: str) -> tuple[UserRule, str, str] | None:
        """The first rule that says what becomes of a dotted name, with the part it is about and what that becomes."""
        found: list[tuple[int, UserRule, str, str]] = []
        parts = qualified.split(".")
        for count in range(1, len(parts) + 1):
            old = ".".join(parts[:count])
            for number, rule in self._full.get(old, ()):
                if _speaks_of_names(rule) and not _is_done(qualified, old, rule.rename):
                    found.append((number, rule, old, rule.rename))
        module = ".".join(parts[:-1])
        for number, rule in self._last.get(parts[-1], ()):
            if rule.rename and not f".{qualified}".endswith(f".{rule.rename}"):
                new = f"{module}.{rule.rename}" if module else rule.rename
                found.append((number, rule, qualified, new))
        if not found:
            return None
        _, rule, old, new = min(found, key=lambda item: item[0])
        return rule, old, new

    def of_call(self, site: Site[ast.Call]) -> list[UserRule]:
        """The rules that speak about a call, in their order."""
        function = site.node.func
        name = site.qualified(function) if isinstance(function, (ast.Name, ast.Attribute)) else ""
        if not name and isinstance(function, ast.Name):
            name = function.id  # of the module itself, or of nobody knows where
        found = dict(self._full.get(name, ())) if name else {}
        found.update(
            (number, rule)
            for number, rule in self._last.get(last_name(function), ())
            if rule.match.of_objects or isinstance(function, ast.Name)
        )
        return [found[number] for number in sorted(found)]


def _speaks_of_names(rule: UserRule) -> bool:
    return bool(rule.rename) or rule.kind is not Kind.CHANGE


def _is_done(qualified: str, old: str, new: str) -> bool:
    """Whether `torch.a.b`, which begins with `torch.a`, is what a rule makes of `torch.a`."""
    return new == old or (new.startswith(f"{old}.") and f"{qualified}.".startswith(f"{new}."))


def trigger_words(rules: Iterable[UserRule]) -> tuple[str, ...]:
    """The words of which a file must hold one."""
    return tuple({rule.match.name.rpartition(".")[2] for rule in rules})
