"""Reading rule files: the format by the suffix, all files of a run together; and that of ms_fmk_transplt.

{"rules": {"ArgsModifyRule": [...], ...}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.conversion.custom.engine import check_circles
from torchferry.conversion.custom.model import (
    ArgumentChanges,
    CallPattern,
    CustomRules,
    KeyPath,
    Problems,
    Template,
    UserRule,
    is_dotted_name,
    parsed_argument,
)
from torchferry.conversion.custom.toml_format import read_toml
from torchferry.errors import RuleFileError, not_readable
from torchferry.text import Text

# The line on which each value of a JSON text stands; the text is known to be valid.

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')


@dataclass
class _Around:
    """An object or list that the scan is in."""

    path: KeyPath
    is_object: bool
    key: str | int = 0
    wants_key: bool = False

    @property
    def inner(self) -> KeyPath:
        return (*self.path, self.key)


def json_lines(text: str) -> tuple[dict[KeyPath, int], list[tuple[KeyPath, int]]]:
    """Path -> line, of an object's entries the line of the key; and the keys that stand twice in one object."""
    lines: dict[KeyPath, int] = {(): 1}
    twice: list[tuple[KeyPath, int]] = []
    around: list[_Around] = []
    line = 1
    for match in _TOKEN.finditer(text):
        token = match.group()
        here = around[-1] if around else None
        if token == "\n":
            line += 1
        elif token in ("}", "]"):
            around.pop()
        elif token == ",":
            assert here is not None
            here.wants_key = here.is_object
            here.key = here.key + 1 if isinstance(here.key, int) else here.key
        elif here is not None and here.wants_key:
            here.key, here.wants_key = json.loads(token), False
            if here.inner in lines:
                twice.append((here.inner, line))
            lines[here.inner] = line
        elif token != ":":
            path = here.inner if here is not None else ()
            lines.setdefault(path, line)
            if token in ("{", "["):
                around.append(_Around(path, token == "{", 0, token == "{"))
    return lines, twice


ARGUMENTS = "USER1"
NAMES = "USER2"

_ARGUMENT = Text("Your rule: argument {position} of `{name}`", "自定义规则：`{name}` 的第 {position} 个参数")

_FIELDS: Mapping[str, Mapping[str, type]] = {
    "ArgsModifyRule": {"func_name": str, "arg_idx": int, "arg_new": str},
    "FuncNameModifyRule": {"old_name": str, "new_name": str},
    "ModuleNameModifyRule": {"old_name": str, "new_name": str, "parent_module": str},
}
_OPTIONAL = frozenset({"parent_module"})
_MEANING = {
    "arg_idx": Text("a position counted from 0", "从 0 开始的位置"),
    "arg_new": Text("one argument of a Python call", "Python 调用的一个参数"),
    **dict.fromkeys(
        ("func_name", "old_name", "new_name", "parent_module"),
        Text("a dotted Python name", "以点分隔的 Python 名称"),
    ),
}


def read_json(file: Path, text: str) -> list[UserRule]:
    """The rules of a file's text; all its mistakes as one RuleFileError."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise RuleFileError(
            Text(
                f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}",
                f"{file}:{error.lineno}:{error.colno}：不是 JSON：{error.msg}",
            )
        ) from None
    except RecursionError:
        raise RuleFileError(
            Text(f"{file}: nested too deeply for a rule file", f"{file}：嵌套过深，不像规则文件")
        ) from None
    lines, twice = json_lines(text)
    problems = Problems(file, lines)
    for path, _ in twice:
        problems.add(
            path, Text("is given twice; only the last one would count", "出现了两次；只有最后一个有效")
        )
    found = _read(data, problems)
    problems.raise_if_any()
    return found


def _read(data: Any, problems: Problems) -> list[UserRule]:
    kinds = data.get("rules") if isinstance(data, dict) else None
    if not isinstance(kinds, dict):
        problems.add(
            (),
            Text(
                f'expected {{"rules": {{...}}}} with any of {", ".join(_FIELDS)}',
                f'应为 {{"rules": {{...}}}}，其中可有 {", ".join(_FIELDS)}',
            ),
        )
        return []
    for kind in kinds:
        if kind not in _FIELDS:
            problems.unknown(("rules", kind), _FIELDS)
    arguments = [_argument_rule(item, place) for item, place in _entries(kinds, "ArgsModifyRule", problems)]
    modules = [_name_rule(item, place) for item, place in _entries(kinds, "ModuleNameModifyRule", problems)]
    functions = [_name_rule(item, place) for item, place in _entries(kinds, "FuncNameModifyRule", problems)]
    return [*arguments, *modules, *functions]


def _entries(kinds: dict[str, Any], kind: str, problems: Problems) -> Iterator[tuple[dict[str, Any], str]]:
    """The entries of a kind that are as they should be, each with its place."""
    entries = kinds.get(kind, [])
    if not isinstance(entries, list):
        problems.add(
            ("rules", kind),
            Text(
                f"expected a list, found {type(entries).__name__}",
                f"应为列表，实际为 {type(entries).__name__}",
            ),
        )
        return
    for index, entry in enumerate(entries):
        path = ("rules", kind, index)
        count = len(problems.found)
        _check(entry, _FIELDS[kind], path, problems)
        if len(problems.found) == count:
            yield entry, f"{problems.file.name}:{problems.line(path)}"


def _check(entry: Any, fields: Mapping[str, type], path: KeyPath, problems: Problems) -> None:
    if not isinstance(entry, dict):
        problems.add(
            path, Text(f"expected an object with {', '.join(fields)}", f"应为包含 {', '.join(fields)} 的对象")
        )
        return
    for key in entry:
        if key not in fields:
            problems.unknown((*path, key), fields)
    for key, expected in fields.items():
        if key not in entry:
            if key not in _OPTIONAL:
                problems.add(
                    path,
                    Text(
                        f"{key} is missing (expected {expected.__name__})",
                        f"缺少 {key}（应为 {expected.__name__}）",
                    ),
                )
        elif not isinstance(entry[key], expected) or isinstance(entry[key], bool):
            problems.add(
                (*path, key),
                Text(
                    f"expected {expected.__name__}, found {type(entry[key]).__name__}",
                    f"应为 {expected.__name__}，实际为 {type(entry[key]).__name__}",
                ),
            )
        elif not _is_usable(key, entry[key]):
            problems.add(
                (*path, key),
                Text("{value!r} is not {what}", "{value!r} 不是{what}").format(
                    value=entry[key], what=_MEANING[key]
                ),
            )


def _is_usable(key: str, value: str | int) -> bool:
    """Whether a value can stand in Python code, so that a mistake shows here and not in every file."""
    if isinstance(value, int):
        return value >= 0
    if key == "arg_new":
        return parsed_argument(value) is not None
    return is_dotted_name(value) or (key == "parent_module" and not value)


def _argument_rule(item: dict[str, Any], place: str) -> UserRule:
    name, position = item["func_name"], item["arg_idx"]
    is_last = "." not in name
    return UserRule(
        ARGUMENTS,
        place,
        CallPattern(name, is_full=not is_last, is_last=is_last, of_objects=is_last),
        arguments=ArgumentChanges(replace=((position, Template(item["arg_new"])),)),
        message=_ARGUMENT.format(position=position, name=name),
    )


def _name_rule(item: dict[str, Any], place: str) -> UserRule:
    prefix = f"{item['parent_module']}." if item.get("parent_module") else ""
    old, new = prefix + item["old_name"], prefix + item["new_name"]
    return UserRule(NAMES, place, CallPattern(old, is_last="." not in old), rename=new)


SUFFIXES = (".json", ".toml")


def load_custom_rules(*files: Path, vendors: Collection[str] = (), other: str = "") -> CustomRules:
    """Read rule files; mistakes are named with their lines and what is allowed there.

    `vendors` are the names that a rule may be limited to; `other` is how a file with another suffix is read.
    """
    rules: list[UserRule] = []
    for file in files:
        suffix = file.suffix.lower() if file.suffix.lower() in SUFFIXES else other
        if not suffix:
            raise RuleFileError(
                Text(
                    f"{file}: unknown kind of rule file; it must end in {' or '.join(SUFFIXES)}",
                    f"{file}：未知的规则文件类型；文件名必须以 {' or '.join(SUFFIXES)} 结尾",
                )
            )
        text = _read_text(file)
        rules += read_json(file, text) if suffix == ".json" else read_toml(file, text, vendors)
    custom = CustomRules(tuple(rules))
    check_circles(custom)
    return custom


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise RuleFileError(
            Text(f"no such rule file: {file}; check the path", f"没有该规则文件：{file}；请检查路径")
        ) from None
    except IsADirectoryError:
        raise RuleFileError(
            Text(f"{file}: is a folder; name the rule file in it", f"{file}：是文件夹；请给出其中的规则文件")
        ) from None
    except OSError as error:
        raise RuleFileError(*not_readable(file, error).texts) from None
    except UnicodeDecodeError:
        raise RuleFileError(
            Text(f"{file}: not UTF-8; save it as UTF-8", f"{file}：不是 UTF-8；请保存为 UTF-8")
        ) from None
