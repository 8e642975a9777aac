"""Rules that would never come to an end: a becomes b, and b becomes a; or the new code calls what it is made of."""

from __future__ import annotations

import ast

from torchferry.convert.custom.matching import RuleIndex
from torchferry.convert.custom.model import CustomRules, Pattern, UserRule
from torchferry.errors import RuleFileError
from torchferry.source.names import dotted_name, last_name

LONGEST_CHAIN = 20  # a file is gone over as often at most
_SOME_MODULE = "some_module"


def check_circles(custom: CustomRules) -> None:
    """Raise RuleFileError for the first names that the rules would rename for ever."""
    vendors = frozenset[str]().union(*(rule.vendors for rule in custom.rules))
    for vendor in ("", *sorted(vendors)):
        rules = custom.for_vendor(vendor)
        index = RuleIndex(rules)
        for rule in rules:
            if rule.rename:
                _check_chain(index, rule)
            else:
                _check_new_code(rule)


def _check_chain(index: RuleIndex, first: UserRule) -> None:
    is_last = first.match.is_last
    name = f"{_SOME_MODULE}.{first.match.name}" if is_last else first.match.name
    steps: list[str] = []
    while (found := index.renaming(name)) is not None and found[2]:
        rule, old, new = found
        steps.append(f"{rule.place} makes {_shown(new)} of {_shown(old)}")
        name = new + name[len(old) :]
        if len(steps) > LONGEST_CHAIN:
            chain = ", ".join(steps[:3])
            raise RuleFileError(
                f"{first.place}: these renamings have no end: {chain}, ...; remove one of them, "
                "or write the final name in each"
            )


def _check_new_code(rule: UserRule) -> None:
    """Raise RuleFileError for a rule that would find its own work and go on with that."""
    templates = [template for _, template in rule.arguments.replace]
    if rule.wrap is not None:
        templates.append(rule.wrap)
    texts = [text for _, text in rule.arguments.add]
    texts += [f"{item.before}(0){item.after}" if item.has_hole else item.text for item in templates]
    for text in texts:
        _, *inner = [node for node in ast.walk(ast.parse(f"_({text}\n)")) if isinstance(node, ast.Call)]
        if any(_is_matched(node, rule.match) for node in inner):
            raise RuleFileError(
                f"{rule.place}: the new code calls {rule.match.name} itself, and would be changed again for ever: {text}"
            )


def _is_matched(call: ast.Call, pattern: Pattern) -> bool:
    if pattern.is_last and last_name(call.func) == pattern.name:
        return True
    return pattern.is_full and dotted_name(call.func) == pattern.name


def _shown(name: str) -> str:
    return name.removeprefix(f"{_SOME_MODULE}.")
