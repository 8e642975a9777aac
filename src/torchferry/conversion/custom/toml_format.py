"""TorchFerry's own rule file: [[rule]] tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from torchferry.conversion.custom.model import (
    ArgumentChanges,
    CallPattern,
    KeyPath,
    Problems,
    Slot,
    Template,
    TemplateError,
    UserRule,
    is_dotted_name,
    make_template,
    parsed_import,
    positional_names,
)
from torchferry.errors import RuleFileError
from torchferry.finding import Kind
from torchferry.text import Text
from torchferry.vendors.schema import toml_module

# The line on which each key of a TOML text stands; the text is known to be valid.

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'|"
    r"#[^\n]*|\n|[{}\[\]=,.]|[^\s{}\[\]=,.#\"']+",
    re.DOTALL,
)

Token = tuple[str, int]  # text, line


def toml_lines(text: str) -> dict[KeyPath, int]:
    """Path -> line of the key, or of the [[header]] of a table."""
    return _Scan(text).lines


class _Scan:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {(): 1}
        self.counts: dict[KeyPath, int] = {}  # of each array of tables
        self.table: KeyPath = ()
        for statement in _statements(text):
            if statement[0][0] == "[":
                is_array = statement[1][0] == "["
                path: KeyPath = ()
                names = _key(statement)
                for number, name in enumerate(names, 1):
                    path = (*path, name)
                    if number == len(names) and is_array:
                        self.counts[path] = self.counts.get(path, -1) + 1
                    if path in self.counts:
                        path = (*path, self.counts[path])
                self.table = path
                self.lines.setdefault(path, statement[0][1])
            else:
                self._entry(statement, self.table)

    def _entry(self, tokens: list[Token], table: KeyPath) -> None:
        """`key = value`; the keys of inline tables in the value, too."""
        equals = next((number for number, token in enumerate(tokens) if token[0] == "="), len(tokens))
        path = (*table, *_key(tokens[:equals]))
        self.lines[path] = tokens[0][1]
        self._value(tokens[equals + 1 :], path)

    def _value(self, tokens: list[Token], path: KeyPath) -> None:
        if not tokens or tokens[0][0] not in ("{", "["):
            return
        for number, part in enumerate(_parts(tokens[1:])):
            if tokens[0][0] == "{":
                self._entry(part, path)
            else:
                inner = (*path, number)
                self.lines[inner] = part[0][1]
                self._value(part, inner)


def _statements(text: str) -> Iterator[list[Token]]:
    """The headers and entries of the file, each as its tokens without comments."""
    line, depth = 1, 0
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n" and depth == 0 and tokens:
            yield tokens
            tokens = []
        elif token != "\n" and not token.startswith("#"):
            depth += (token in ("[", "{")) - (token in ("]", "}"))
            tokens.append((token, line))
        line += token.count("\n")
    if tokens:
        yield tokens


def _parts(tokens: list[Token]) -> Iterator[list[Token]]:
    """The entries of a list or inline table, up to its end."""
    part: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        if depth < 0 or (token[0] == "," and depth == 0):
            if part:
                yield part
            part = []
            if depth < 0:
                return
        else:
            part.append(token)


def _key(tokens: list[Token]) -> list[str]:
    """The names of a dotted key; in quotes, without their escapes."""
    return [text.strip("\"'") for text, _ in tokens if text not in ("[", "]", ".")]


DEFAULT_ID = "USER3"

_TEXT, _TEXTS, _TABLE = "a string", "a list of strings", "a table"
_KEYS: Mapping[str, str] = {
    "match": _TEXT, "rename": _TEXT, "import": _TABLE, "arguments": _TABLE, "signature": _TEXT, "wrap": _TEXT,
    "needs": _TEXTS, "vendors": _TEXTS, "kind": _TEXT, "message": _TEXT, "message_zh": _TEXT, "id": _TEXT,
}  # fmt: skip
_ARGUMENT_KEYS: Mapping[str, str] = {
    "add": "a table of strings",
    "remove": "a list of names or positions",
    "rename": "a table of strings",
    "replace": "a table of strings",
}
_TYPES = {
    _TEXT: Text(_TEXT, "字符串"),
    _TEXTS: Text(_TEXTS, "字符串列表"),
    _TABLE: Text(_TABLE, "表"),
    "a table of strings": Text("a table of strings", "字符串表"),
    "a list of names or positions": Text("a list of names or positions", "名称或位置的列表"),
}
_METHOD = Text("a name without dots, because match begins with *.", "不带点的名称（match 以 *. 开头）")
_DOTTED = Text("a dotted Python name", "以点分隔的 Python 名称")
_IMPORT_KEYS = ("replace", "with")
_CONVERTED = re.compile(r"\b(?:cuda|nccl)\b")  # words that the built-in rules change
_ACTIONS = ("rename", "import", "arguments", "wrap")
_KINDS = {kind.value: kind for kind in (Kind.CHANGE, Kind.TODO, Kind.RISK, Kind.INFO)}
_FITS: Mapping[str, Callable[[Any], bool]] = {
    _TEXT: lambda value: isinstance(value, str),
    _TEXTS: lambda value: isinstance(value, str) or _all(value, str),
    _TABLE: lambda value: isinstance(value, dict),
    "a table of strings": lambda value: isinstance(value, dict) and _all(list(value.values()), str),
    "a list of names or positions": lambda value: _all(value, (str, int)),
}


def _all(value: Any, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, kinds) and not isinstance(item, bool) for item in value
    )


def read_toml(file: Path, text: str, vendors: Collection[str] = ()) -> list[UserRule]:
    """The rules of a file's text; all its mistakes as one RuleFileError. `vendors` are the names that exist."""
    toml = toml_module()
    try:
        data = toml.loads(text)
    except toml.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        where = f":{place[1]}:{place[2]}" if place else f":{text.count(chr(10)) + 1}"
        raise RuleFileError(
            Text(
                f"{file}{where}: not TOML: {str(error).partition(' (at ')[0]}",
                f"{file}{where}：不是 TOML：{str(error).partition(' (at ')[0]}",
            )
        ) from None
    except RecursionError:
        raise RuleFileError(
            Text(f"{file}: nested too deeply for a rule file", f"{file}：嵌套过深，不像规则文件")
        ) from None
    problems = Problems(file, toml_lines(text), counts=False)
    rules = _read(data, vendors, problems)
    problems.raise_if_any()
    return rules


def _read(data: dict[str, Any], vendors: Collection[str], problems: Problems) -> list[UserRule]:
    for key in data:
        if key != "rule":
            problems.unknown((key,), ["rule"])
    entries = data.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problems.add(
            ("rule",), Text("expected tables; begin each with [[rule]]", "应为表；每个表以 [[rule]] 开头")
        )
        return []
    if not entries and "rule" not in data:
        problems.add((), Text("has no rules; begin each with [[rule]]", "没有规则；每条规则以 [[rule]] 开头"))
    found: list[UserRule] = []
    for index, entry in enumerate(entries):
        reader = _RuleReader(entry, ("rule", index), vendors, problems)
        count = len(problems.found)
        rule = reader.read()
        if rule is not None and len(problems.found) == count:
            found.append(rule)
    return found


class _RuleReader:
    def __init__(
        self, entry: dict[str, Any], path: KeyPath, vendors: Collection[str], problems: Problems
    ) -> None:
        self.entry = entry
        self.path = path
        self.vendors = vendors
        self.problems = problems

    def read(self) -> UserRule | None:
        fitting = self._fitting(self.entry, _KEYS, self.path)
        if len(fitting) == len(self.entry):
            self._check_combination()
        self.entry = fitting
        match, rename = self._match_and_rename()
        name: str = fitting.get("id", DEFAULT_ID)
        if not re.fullmatch(r"USER\d{1,6}", name):
            self._add(
                "id",
                Text(
                    f'"{name}" is not USER with a number, such as USER7',
                    f'"{name}" 不是 USER 加数字，例如 USER7',
                ),
            )
        english = fitting.get("message", "")
        chinese = fitting.get("message_zh", "") or english
        rule = UserRule(
            id=name,
            place=f"{self.problems.file.name}:{self.problems.line(self.path)}",
            match=match or CallPattern(""),
            rename=rename,
            may_import=match is not None and not match.is_last,
            needs=self._needs(),
            arguments=self._arguments(),
            signature=self._signature(),
            wrap=self._wrap(),
            vendors=self._vendors(),
            kind=self._kind(),
            message=Text(english or chinese, chinese) if chinese else None,
        )
        if fitting.get("kind", Kind.CHANGE.value) not in _KINDS:
            self._add(
                "kind",
                Text(
                    f'"{fitting["kind"]}" is unknown; allowed are {", ".join(_KINDS)}',
                    f'"{fitting["kind"]}" 未知；允许的有 {", ".join(_KINDS)}',
                ),
            )
        return rule if match is not None else None

    def _add(self, key: str, text: Text) -> None:
        self.problems.add((*self.path, key), text)

    def _fitting(self, table: dict[str, Any], keys: Mapping[str, str], path: KeyPath) -> dict[str, Any]:
        """The entries of a table that exist and have the right type; the others are problems."""
        fitting: dict[str, Any] = {}
        for key, value in table.items():
            if key not in keys:
                self.problems.unknown((*path, key), keys)
            elif not _FITS[keys[key]](value):
                self.problems.add(
                    (*path, key),
                    Text("expected {wanted}, found {found}", "应为{wanted}，实际为 {found}").format(
                        wanted=_TYPES[keys[key]], found=_shown(value)
                    ),
                )
            else:
                fitting[key] = value
        return fitting

    def _check_combination(self) -> None:
        actions = [key for key in _ACTIONS if key in self.entry]
        only_says = self._kind() is not Kind.CHANGE
        if "match" not in self.entry and "import" not in self.entry:
            self.problems.add(
                self.path,
                Text(
                    'match is missing; add match = "package.function" or import = {...}',
                    '缺少 match；请添加 match = "package.function" 或 import = {...}',
                ),
            )
        if "import" in self.entry and len([*actions, *(["match"] if "match" in self.entry else [])]) > 1:
            self._add(
                "import",
                Text(
                    "replaces match and rename, and can't be combined with other actions",
                    "已包含 match 和 rename，不能与其他操作同时使用",
                ),
            )
        if not actions and not only_says:
            self.problems.add(
                self.path,
                Text(
                    f'has no action; add one of {", ".join(_ACTIONS)}, or kind = "todo" with a message',
                    f'没有操作；请添加 {", ".join(_ACTIONS)} 之一，或 kind = "todo" 与 message',
                ),
            )
        if actions and only_says:
            self._add(
                "kind",
                Text(
                    f'"{self.entry["kind"]}" only reports its message; remove {", ".join(actions)}',
                    f'"{self.entry["kind"]}" 只报告 message；请删除 {", ".join(actions)}',
                ),
            )
        if only_says and "message" not in self.entry:
            self._add(
                "kind",
                Text(
                    f'"{self.entry["kind"]}" needs a message = "..."',
                    f'"{self.entry["kind"]}" 需要 message = "..."',
                ),
            )
        if "import" in self.entry and "needs" in self.entry:
            self._add("needs", Text("is not needed with import", "与 import 一起使用时不需要"))
        if "signature" in self.entry and "arguments" not in self.entry:
            self._add(
                "signature", Text("is only useful with [rule.arguments]", "只在有 [rule.arguments] 时有用")
            )

    def _match_and_rename(self) -> tuple[CallPattern | None, str]:
        if "import" in self.entry:
            table = self.entry["import"]
            for key in table:
                if key not in _IMPORT_KEYS:
                    self.problems.unknown((*self.path, "import", key), _IMPORT_KEYS)
            for key in _IMPORT_KEYS:
                value = table.get(key)
                if not isinstance(value, str) or not is_dotted_name(value):
                    self.problems.add(
                        (*self.path, "import", key),
                        Text(
                            "expected the dotted name of a module, found {found}",
                            "应为以点分隔的模块名，实际为 {found}",
                        ).format(found=_shown(value)),
                    )
            if not all(isinstance(table.get(key), str) for key in _IMPORT_KEYS):
                return None, ""
            return CallPattern(table["replace"]), table["with"]
        if "match" not in self.entry:
            return None, ""
        name = self.entry["match"]
        rename = self.entry.get("rename", "")
        is_last = name.startswith("*.")
        word = name.removeprefix("*.")
        if not is_dotted_name(word) or (is_last and "." in word):
            self._add(
                "match",
                Text(
                    f'"{name}" is neither a dotted name like "torch.svd" nor "*." with a method\'s name',
                    f'"{name}" 既不是 "torch.svd" 这样的名称，也不是 "*." 加方法名',
                ),
            )
            return None, ""
        if "rename" in self.entry:
            new = rename.removeprefix("*.") if is_last else rename
            if not is_dotted_name(new) or (is_last and "." in new):
                wanted = _METHOD if is_last else _DOTTED
                self._add(
                    "rename",
                    Text('"{name}" is not {wanted}', '"{name}" 不是{wanted}').format(
                        name=rename, wanted=wanted
                    ),
                )
            elif rename == name:
                self._add("rename", Text("is the current name", "与现有名称相同"))
            rename = new
        return CallPattern(word, is_full=not is_last, is_last=is_last, of_objects=is_last), rename

    def _arguments(self) -> ArgumentChanges:
        path = (*self.path, "arguments")
        table = self._fitting(self.entry.get("arguments", {}), _ARGUMENT_KEYS, path)

        def each(kind: str, read: Callable[[KeyPath, str, str], Any]) -> tuple[Any, ...]:
            return tuple(read((*path, kind, key), key, text) for key, text in table.get(kind, {}).items())

        removed = enumerate(table.get("remove", ()))
        changes = ArgumentChanges(
            add=each("add", self._added),
            remove=tuple(self._slot((*path, "remove", number), item) for number, item in removed),
            rename=each("rename", self._renamed),
            replace=each("replace", self._replaced),
        )
        if "arguments" in self.entry and table == self.entry["arguments"] and not changes:
            self._add(
                "arguments",
                Text(
                    f"has no action; allowed are {', '.join(_ARGUMENT_KEYS)}",
                    f"没有操作；允许的有 {', '.join(_ARGUMENT_KEYS)}",
                ),
            )
        return changes

    def _slot(self, path: KeyPath, key: str | int) -> Slot:
        if isinstance(key, int) or key.isdigit():
            if int(key) < 0:
                self.problems.add(
                    path, Text(f"{key} is not a position counted from 0", f"{key} 不是从 0 开始的位置")
                )
            return int(key)
        if not key.isidentifier():
            self.problems.add(
                path,
                Text(
                    f'"{key}" is neither the name of an argument nor a position',
                    f'"{key}" 既不是参数名，也不是位置',
                ),
            )
        return key

    def _renamed(self, path: KeyPath, old: str, new: str) -> tuple[str, str]:
        for name in (old, new):
            if not is_dotted_name(name) or "." in name:
                self.problems.add(
                    path, Text(f'"{name}" is not the name of an argument', f'"{name}" 不是参数名')
                )
        return old, new

    def _added(self, path: KeyPath, key: str, text: str) -> tuple[Slot, str]:
        slot, template = self._replaced(path, key, text)
        if template.has_hole:
            self.problems.add(
                path,
                Text(
                    "{value} has no meaning here: an added argument has no value yet",
                    "{value} 在此没有意义：新增的参数还没有值",
                ),
            )
        if isinstance(slot, int):
            self._check_stays(path, text)
        return slot, text

    def _replaced(self, path: KeyPath, key: str, text: str) -> tuple[Slot, Template]:
        slot = self._slot(path, key)
        try:
            template = make_template(text, "value", required=False)
        except TemplateError as error:
            self.problems.add(path, Text(f'"{text}" {error.text.en}', f'"{text}" {error.text.zh}'))
            return slot, Template(text)
        if template.has_hole:
            self._check_stays(path, text)
        return slot, template

    def _check_stays(self, path: KeyPath, text: str) -> None:
        """What is recognised by its text when a file is converted again must not be converted itself."""
        found = _CONVERTED.search(text)
        if found:
            self.problems.add(
                path,
                Text(
                    f"`{found.group()}` in it would be converted as well; write the vendor's name, and vendors = [...]",
                    f"其中的 `{found.group()}` 本身也会被转换；请写厂商的名称，并设置 vendors = [...]",
                ),
            )

    def _wrap(self) -> Template | None:
        if "wrap" not in self.entry:
            return None
        try:
            template = make_template(self.entry["wrap"], "call", required=True)
        except TemplateError as error:
            self._add(
                "wrap",
                Text(
                    f'"{self.entry["wrap"]}" {error.text.en}; write it like "torch.sqrt({{call}})"',
                    f'"{self.entry["wrap"]}" {error.text.zh}；请写成 "torch.sqrt({{call}})" 的形式',
                ),
            )
            return None
        if template.depth == 0:
            self._add("wrap", Text("puts nothing around {call}", "没有在 {call} 外添加任何内容"))
        self._check_stays((*self.path, "wrap"), self.entry["wrap"])
        return template

    def _signature(self) -> tuple[str, ...]:
        if "signature" not in self.entry:
            return ()
        names = positional_names(self.entry["signature"])
        if names is None:
            self._add(
                "signature",
                Text(
                    f'"{self.entry["signature"]}" is not a signature like "f(a, b, c=1)"',
                    f'"{self.entry["signature"]}" 不是 "f(a, b, c=1)" 形式的签名',
                ),
            )
        return names or ()

    def _needs(self) -> tuple[str, ...]:
        lines = _strings(self.entry.get("needs", []))
        if "import" in self.entry and "with" in self.entry["import"]:
            return (f"import {self.entry['import']['with']}",)
        for line in lines:
            if parsed_import(line) is None:
                self._add(
                    "needs",
                    Text(
                        f'"{line}" is not an import statement like "import torch"',
                        f'"{line}" 不是 "import torch" 形式的导入语句',
                    ),
                )
        return lines

    def _vendors(self) -> frozenset[str]:
        names = _strings(self.entry.get("vendors", []))
        for name in names:
            if self.vendors and name not in self.vendors:
                self._add(
                    "vendors",
                    Text(
                        f'unknown vendor "{name}"; allowed are {", ".join(self.vendors)}',
                        f'未知的厂商 "{name}"；允许的有 {", ".join(self.vendors)}',
                    ),
                )
        return frozenset(names)

    def _kind(self) -> Kind:
        return _KINDS.get(self.entry.get("kind", ""), Kind.CHANGE)


def _strings(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _shown(value: object) -> Text:
    if value is None:
        return Text("nothing", "空值")
    if isinstance(value, bool):
        return Text(str(value).lower(), str(value).lower())
    return Text("a table", "表") if isinstance(value, dict) else Text(repr(value)[:60], repr(value)[:60])
