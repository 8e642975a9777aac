"""The user's rules as the converter takes them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from torchferry.convert.custom.calls import RENAMED, changes_of_call
from torchferry.convert.custom.imports import needed_imports
from torchferry.convert.custom.matching import RuleIndex, trigger_words
from torchferry.convert.custom.model import CustomRules, Slot, UserRule
from torchferry.convert.rule import Proposal, Rename, Rule
from torchferry.convert.site import FileContext, Site
from torchferry.text import Text

_SUMMARY = Text("what your rule file says", "规则文件中的规则")


def custom_rules(custom: CustomRules, vendor: str) -> list[Rule]:
    """Rules for the engine: one for each id, though many of the user's may share it."""
    rules = custom.for_vendor(vendor)
    index = RuleIndex(rules)
    by_id: dict[str, list[UserRule]] = {}
    for rule in rules:
        by_id.setdefault(rule.id, []).append(rule)
    return [_engine_rule(key, group, index) for key, group in by_id.items()]


def _engine_rule(key: str, group: Sequence[UserRule], index: RuleIndex) -> Rule:
    return Rule(
        id=key,
        name="user-rules",
        summary=_SUMMARY,
        is_users=True,
        triggers=trigger_words(group),
        tracks=frozenset(rule.match.name for rule in group if rule.match.is_full),
        nodes=(ast.Call,),
        check=_call_check(key, index),
        rename=_name_check(key, index),
    )


def _call_check(key: str, index: RuleIndex) -> Callable[[Site[ast.Call]], Iterator[Proposal]]:
    def check(site: Site[ast.Call]) -> Iterator[Proposal]:
        taken: set[Slot] = set()
        for rule in index.of_call(site):
            proposals = list(changes_of_call(site, rule, taken))
            if rule.id == key:
                yield from proposals

    return check


def _name_check(key: str, index: RuleIndex) -> Callable[[str, FileContext], Rename | None]:
    def rename(qualified: str, context: FileContext) -> Rename | None:
        found = index.renaming(qualified)
        if found is None or found[0].id != key:
            return None
        rule, old, new = found
        message = rule.message or RENAMED.format(old=old, new=new)
        imports = needed_imports(rule, renames=True) if rule.may_import else ()
        return Rename(old, new, rule.kind, message, needs_prelude=False, imports=imports)

    return rename
