"""The user's rules as the converter takes them; which of many speak about a name or a call is looked up, not tried."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchferry.conversion.custom.calls import RENAMED, changes_of_call, needed_imports
from torchferry.conversion.custom.model import CustomRules, Slot, UserRule
from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.errors import RuleFileError
from torchferry.finding import Kind
from torchferry.source.names import dotted_name, last_name
from torchferry.text import Text

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
                speaks_of_names = bool(rule.rename) or rule.kind is not Kind.CHANGE
                if speaks_of_names and not _is_done(qualified, old, rule.rename):
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


def _is_done(qualified: str, old: str, new: str) -> bool:
    """Whether `torch.a.b`, which begins with `torch.a`, is what a rule makes of `torch.a`."""
    return new == old or (new.startswith(f"{old}.") and f"{qualified}.".startswith(f"{new}."))


# Rules that would never come to an end: a becomes b, and b becomes a; or the new code calls what it is made of.

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
        shown_new, shown_old = (item.removeprefix(f"{_SOME_MODULE}.") for item in (new, old))
        steps.append(f"{rule.place}: {shown_old} → {shown_new}")
        name = new + name[len(old) :]
        if len(steps) > LONGEST_CHAIN:
            chain = ", ".join(steps[:3])
            raise RuleFileError(
                Text(
                    f"{first.place}: these renamings form a loop: {chain}, ...; remove one of them, or write the "
                    "final name in each",
                    f"{first.place}：这些重命名形成循环：{chain}, ...；请删除其中之一，或在每项中写明最终名称",
                )
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
        names = [dotted_name(node.func) for node in inner] if rule.match.is_full else []
        names += [last_name(node.func) for node in inner] if rule.match.is_last else []
        if rule.match.name in names:
            raise RuleFileError(
                Text(
                    f"{rule.place}: the new code calls {rule.match.name} again, so the rule would never end: {text}",
                    f"{rule.place}：新代码又调用了 {rule.match.name}，该规则将无限重复：{text}",
                )
            )


_SUMMARY = Text("Your own rule, from a rule file", "规则文件中您自己的规则")


def custom_rules(custom: CustomRules, vendor: str) -> list[Rule]:
    """Rules for the engine: one for each id, though many of the user's may share it."""
    rules = custom.for_vendor(vendor)
    index = RuleIndex(rules)
    by_id: dict[str, list[UserRule]] = {}
    for rule in rules:
        by_id.setdefault(rule.id, []).append(rule)
    return [_engine_rule(key, group, index) for key, group in by_id.items()]


def _engine_rule(key: str, group: Sequence[UserRule], index: RuleIndex) -> Rule:
    def check(site: Site[ast.Call]) -> Iterator[Proposal]:
        taken: set[Slot] = set()
        for rule in index.of_call(site):
            proposals = list(changes_of_call(site, rule, taken))
            if rule.id == key:
                yield from proposals

    def rename(qualified: str, context: FileContext) -> Rename | None:
        found = index.renaming(qualified)
        if found is None or found[0].id != key:
            return None
        rule, old, new = found
        message = rule.message or RENAMED.format(old=old, new=new)
        imports = needed_imports(rule, renames=True) if rule.may_import else ()
        return Rename(old, new, rule.kind, message, needs_prelude=False, imports=imports)

    return Rule(
        id=key,
        name="user-rules",
        summary=_SUMMARY,
        is_users=True,
        # The words of which a file must hold one.
        triggers=tuple({rule.match.name.rpartition(".")[2] for rule in group}),
        tracks=frozenset(rule.match.name for rule in group if rule.match.is_full),
        nodes=(ast.Call,),
        check=check,
        rename=rename,
    )
