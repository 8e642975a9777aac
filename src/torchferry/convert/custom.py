"""The user's own rules, in the JSON format of ms_fmk_transplt."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.convert.rule import Proposal, Rename, Rule
from torchferry.convert.site import FileContext, Site
from torchferry.errors import RuleFileError
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.names import last_name
from torchferry.text import Text

_ARGUMENT = Text("your rule: argument {position} of {name}", "自定义规则：{name} 的第 {position} 个参数")
_RENAMED = Text("your rule: {old} is {new}", "自定义规则：{old} 改为 {new}")

_FIELDS: dict[str, dict[str, type]] = {
    "ArgsModifyRule": {"func_name": str, "arg_idx": int, "arg_new": str},
    "FuncNameModifyRule": {"old_name": str, "new_name": str},
    "ModuleNameModifyRule": {"old_name": str, "new_name": str, "parent_module": str},
}
_OPTIONAL = frozenset({"parent_module"})
_MEANING = {
    "arg_idx": "a position counted from 0",
    "arg_new": "one argument of a Python call",
    **dict.fromkeys(("func_name", "old_name", "new_name", "parent_module"), "a dotted Python name"),
}


@dataclass(frozen=True)
class ArgumentRule:
    function: str
    position: int
    new: str


@dataclass(frozen=True)
class NameRule:
    old: str  # a dotted name, or a last part that any module may have
    new: str


@dataclass(frozen=True)
class CustomRules:
    """What a rule file says."""

    arguments: tuple[ArgumentRule, ...] = ()
    functions: tuple[NameRule, ...] = ()
    modules: tuple[NameRule, ...] = ()


def load_custom_rules(path: Path) -> CustomRules:
    """Read a rule file; a mistake is named with its place and what is allowed there."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise RuleFileError(f"{path}: no such rule file") from None
    except OSError as error:
        raise RuleFileError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise RuleFileError(f"{path}: is not UTF-8; save it as UTF-8") from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise RuleFileError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    rules = data.get("rules") if isinstance(data, dict) else None
    if not isinstance(rules, dict):
        raise RuleFileError(f'{path}: expected {{"rules": {{...}}}} with any of {", ".join(_FIELDS)}')
    checked = {
        kind: [_check(path, kind, index, entry) for index, entry in enumerate(_entries(path, rules, kind))]
        for kind in rules
    }
    return CustomRules(
        tuple(
            ArgumentRule(item["func_name"], item["arg_idx"], item["arg_new"])
            for item in checked.get("ArgsModifyRule", ())
        ),
        tuple(NameRule(item["old_name"], item["new_name"]) for item in checked.get("FuncNameModifyRule", ())),
        tuple(_module_rule(item) for item in checked.get("ModuleNameModifyRule", ())),
    )


def _entries(path: Path, rules: dict[str, Any], kind: str) -> list[Any]:
    if kind not in _FIELDS:
        raise RuleFileError(f"{path}: rules.{kind}: unknown; allowed are {', '.join(_FIELDS)}")
    if not isinstance(rules[kind], list):
        raise RuleFileError(f"{path}: rules.{kind}: expected a list, found {type(rules[kind]).__name__}")
    return list(rules[kind])


def _check(path: Path, kind: str, index: int, entry: Any) -> dict[str, Any]:
    place = f"{path}: rules.{kind}[{index}]"
    if not isinstance(entry, dict):
        raise RuleFileError(f"{place}: expected an object with {', '.join(_FIELDS[kind])}")
    for key in entry:
        if key not in _FIELDS[kind]:
            raise RuleFileError(f"{place}.{key}: unknown; allowed are {', '.join(_FIELDS[kind])}")
    for key, expected in _FIELDS[kind].items():
        if key not in entry and key not in _OPTIONAL:
            raise RuleFileError(f"{place}: {key} is missing (expected {expected.__name__})")
        if key in entry and (not isinstance(entry[key], expected) or isinstance(entry[key], bool)):
            found = type(entry[key]).__name__
            raise RuleFileError(f"{place}.{key}: expected {expected.__name__}, found {found}")
        if key in entry and not _is_usable(key, entry[key]):
            raise RuleFileError(f"{place}.{key}: {entry[key]!r} is not {_MEANING[key]}")
    return dict(entry)


def _is_usable(key: str, value: str | int) -> bool:
    """Whether a value can stand in Python code, so that a mistake shows here and not in every file."""
    if isinstance(value, int):
        return value >= 0
    if key == "arg_new":
        try:
            call = ast.parse(f"f({value}\n)", mode="eval").body
        except (SyntaxError, ValueError):
            return False
        return isinstance(call, ast.Call) and len(call.args) + len(call.keywords) == 1
    return all(part.isidentifier() for part in value.split(".")) or (key == "parent_module" and not value)


def _module_rule(item: dict[str, Any]) -> NameRule:
    parent = item.get("parent_module", "")
    prefix = f"{parent}." if parent else ""
    return NameRule(prefix + item["old_name"], prefix + item["new_name"])


def custom_rules(custom: CustomRules) -> list[Rule]:
    """Rules for the engine; each has the words it looks for as triggers."""
    rules: list[Rule] = []
    if custom.arguments:
        rules.append(_argument_rule(custom.arguments))
    if custom.functions or custom.modules:
        rules.append(_name_rule(custom))
    return rules


def _argument_rule(arguments: tuple[ArgumentRule, ...]) -> Rule:
    def check(site: Site[ast.Call]) -> Iterator[Proposal]:
        for rule in arguments:
            if rule.position < len(site.node.args) and _is_called(site, rule.function):
                argument = site.node.args[rule.position]
                start, end = site.module.start(argument), site.module.end(argument)
                if site.module.data[start:end] != rule.new.encode("utf-8"):
                    message = _ARGUMENT.format(position=rule.position, name=rule.function)
                    edit = Edit(start, end, rule.new)
                    yield site.change(message, edit, node=argument, needs_prelude=False)

    return Rule(
        id="USER1",
        name="user-arguments",
        summary=Text("arguments changed by your rule file", "规则文件修改的参数"),
        is_users=True,
        triggers=tuple({rule.function.rpartition(".")[2] for rule in arguments}),
        nodes=(ast.Call,),
        check=check,
    )


def _is_called(site: Site[ast.Call], name: str) -> bool:
    function = site.node.func
    if site.qualified(function) == name:
        return True
    return "." not in name and last_name(function) == name


def _name_rule(custom: CustomRules) -> Rule:
    names = (*custom.modules, *custom.functions)

    def rename(qualified: str, context: FileContext) -> Rename | None:
        for rule in names:
            found = _match(qualified, rule)
            if found is not None:
                old, new = found
                message = _RENAMED.format(old=old, new=new)
                return Rename(old, new, Kind.CHANGE, message, needs_prelude=False)
        return None

    def check(site: Site[ast.Call]) -> Iterator[Proposal]:
        """A function that nothing here imports or defines, called by its bare name."""
        function = site.node.func
        if not isinstance(function, ast.Name) or site.scope.owner_of(function.id) is not None:
            return
        for rule in custom.functions:
            if rule.old == function.id:
                edit = Edit(site.module.start(function), site.module.end(function), rule.new)
                message = _RENAMED.format(old=rule.old, new=rule.new)
                yield site.change(message, edit, node=function, needs_prelude=False)

    return Rule(
        id="USER2",
        name="user-names",
        summary=Text("names changed by your rule file", "规则文件修改的名称"),
        is_users=True,
        triggers=tuple({rule.old.rpartition(".")[2] for rule in names}),
        nodes=(ast.Call,),
        check=check,
        rename=rename,
    )


def _match(qualified: str, rule: NameRule) -> tuple[str, str] | None:
    """(old, new) dotted names, if the rule's name is this one, a part of it, or its last word."""
    if qualified == rule.old or qualified.startswith(rule.old + "."):
        return rule.old, rule.new
    module, _, last = qualified.rpartition(".")
    if "." not in rule.old and last == rule.old:
        return qualified, f"{module}.{rule.new}" if module else rule.new
    return None
