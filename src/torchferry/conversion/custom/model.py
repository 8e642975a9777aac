"""What a user's rule says, whichever format it was written in, and what is wrong with one."""

from __future__ import annotations

import ast
import difflib
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.errors import RuleFileError
from torchferry.finding import Kind
from torchferry.source.names import dotted_name
from torchferry.text import Text, did_you_mean, then

# Python text with a hole: how it is written around code, and how code that has it around it already is recognised.

_HOLE = "_the_hole_of_this_template"
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # what the parser raises
_OPEN = (ast.Call, ast.keyword)  # what stands in these needs no parentheses

Resolve = Callable[[ast.expr], str]


class TemplateError(ValueError):
    """The text is no Python expression, or has not the one hole that it should have."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


@dataclass(frozen=True)
class Template:
    """An expression; `{call}` or `{value}` in it stands for the code that was there before."""

    text: str
    before: str = ""
    after: str = ""
    has_hole: bool = False
    is_atom: bool = True  # can stand before a dot without parentheses
    bares_hole: bool = True  # what is put in the hole may be any expression
    depth: int = 0  # of the hole below the whole expression
    tree: ast.expr = field(default_factory=lambda: ast.Constant(None), compare=False, repr=False)

    def is_around(self, node: ast.AST, above: list[ast.AST], resolve: Resolve) -> bool:
        """Whether a node stands in this template already; `above` are its ancestors, from the nearest on."""
        return self.depth <= len(above) and _same(self.tree, [node, *above][self.depth], node, resolve)

    def is_form_of(self, node: ast.expr, resolve: Resolve) -> bool:
        """Whether an expression is this template, filled with anything."""
        return _same(self.tree, node, None, resolve)

    def names(self) -> list[str]:
        """The dotted names that the text uses."""
        found = []
        inner = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(self.tree):
            name = dotted_name(node) if id(node) not in inner else ""
            if name and name.partition(".")[0] != _HOLE:
                found.append(name)
        return found


def make_template(text: str, hole: str, required: bool) -> Template:
    """A template from its text; raises TemplateError."""
    mark = f"{{{hole}}}"
    count = text.count(mark)
    if count > 1 or (required and not count):
        raise TemplateError(
            Text(f"must contain {mark} only once", f"只能包含一次 {mark}")
            if count
            else Text(f"must contain {mark} in place of the call", f"必须用 {mark} 表示原调用")
        )
    code = text.replace(mark, f"({_HOLE})")
    tree = parsed(f"(\n{code}\n)")
    if tree is None:
        raise TemplateError(Text("is not a Python expression", "不是 Python 表达式"))
    path = _path_to_hole(tree)
    if count and not path:
        raise TemplateError(
            Text(
                f"must contain {mark} as an expression, not inside a string",
                f"中的 {mark} 必须是表达式，不能在字符串内",
            )
        )
    if not count:
        return Template(text, tree=tree, is_atom=isinstance(tree, _ATOMS))
    before, _, after = text.partition(mark)
    around = path[-2] if len(path) > 1 else None
    return Template(
        text,
        before,
        after,
        has_hole=True,
        is_atom=isinstance(tree, _ATOMS),
        bares_hole=around is None
        or (isinstance(around, _OPEN) and getattr(around, "func", None) is not path[-1]),
        depth=len(path) - 1,
        tree=tree,
    )


def parsed(code: str | bytes) -> ast.expr | None:
    """The tree of an expression; None if it is none."""
    try:
        return ast.parse(code, mode="eval").body
    except _NO_PYTHON:
        return None


def _path_to_hole(tree: ast.expr) -> list[ast.AST]:
    waiting: list[list[ast.AST]] = [[tree]]
    while waiting:
        path = waiting.pop()
        if isinstance(path[-1], ast.Name) and path[-1].id == _HOLE:
            return path
        waiting.extend([*path, child] for child in ast.iter_child_nodes(path[-1]))
    return []


def needs_parentheses(node: ast.expr, after: str) -> bool:
    """Whether an expression must be put in parentheses to stand beside operators, and before what comes after it."""
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))
    return not isinstance(node, _ATOMS) or (is_number and after.startswith("."))


def _same(template: ast.AST, code: ast.AST, hole: ast.AST | None, resolve: Resolve) -> bool:
    """Whether code is what a template says; its hole is one node, or anything."""
    if isinstance(template, ast.Name) and template.id == _HOLE:
        return hole is None or code is hole
    name = dotted_name(template)
    if name and isinstance(code, ast.expr) and name in (dotted_name(code), resolve(code)):
        return True
    if type(template) is not type(code):
        return False
    return all(
        _same_field(value, getattr(code, key, None), hole, resolve)
        for key, value in ast.iter_fields(template)
    )


def _same_field(value: object, other: object, hole: ast.AST | None, resolve: Resolve) -> bool:
    if isinstance(value, ast.expr_context):
        return True
    if isinstance(value, ast.AST) and isinstance(other, ast.AST):
        return _same(value, other, hole, resolve)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(
            _same_field(one, two, hole, resolve) for one, two in zip(value, other, strict=True)
        )
    return type(value) is type(other) and value == other


Slot = int | str  # an argument of a call: its position, counted from 0, or its name


@dataclass(frozen=True)
class CallPattern:
    """The names that a rule is about."""

    name: str  # a dotted name, or a last word
    is_full: bool = True  # the dotted name itself, and what lies below it
    is_last: bool = False  # the last word of any dotted name
    of_objects: bool = False  # also a method of an object, of which no import tells the name


@dataclass(frozen=True)
class ArgumentChanges:
    """What becomes of the arguments of a call; values are Python expressions."""

    add: tuple[tuple[Slot, str], ...] = ()
    remove: tuple[Slot, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    replace: tuple[tuple[Slot, Template], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove or self.rename or self.replace)


@dataclass(frozen=True)
class UserRule:
    """One rule: where it applies, and what happens there."""

    id: str  # as reports and `# ferry: ignore[...]` name it
    place: str  # "my_rules.toml:12"
    match: CallPattern
    rename: str = ""  # the new dotted name; of a pattern for last words, the new last word
    may_import: bool = False  # an import is added where the new name is not at hand
    needs: tuple[str, ...] = ()  # import statements that the new code needs
    arguments: ArgumentChanges = field(default_factory=ArgumentChanges)
    signature: tuple[str, ...] = ()  # the names of the positional arguments, in order
    wrap: Template | None = None
    vendors: frozenset[str] = frozenset()  # empty means all
    kind: Kind = Kind.CHANGE  # anything else only says its message
    message: Text | None = None


@dataclass(frozen=True)
class CustomRules:
    """The rules of all files, in their order."""

    rules: tuple[UserRule, ...] = ()

    def for_vendor(self, name: str) -> tuple[UserRule, ...]:
        """The rules that apply when code is converted to this vendor."""
        return tuple(rule for rule in self.rules if not rule.vendors or name in rule.vendors)


# The mistakes of one rule file, gathered so that the user sees all of them at once, each with its line.

KeyPath = tuple[str | int, ...]  # how a value is reached: ("rules", "ArgsModifyRule", 0, "arg_idx")

_MOST = 20  # lines; whoever has more mistakes has made one of them many times


class Problems:
    """What is wrong with a file."""

    def __init__(self, file: Path, lines: Mapping[KeyPath, int], counts: bool = True) -> None:
        self.file = file
        self.lines = lines
        self.counts = counts  # whether the entries of a list are told apart by their numbers
        self.found: list[tuple[int, Text]] = []

    def add(self, path: KeyPath, text: Text) -> None:
        """Note a mistake at a key, or at the nearest thing around it that stands in the file."""
        line, shown = self.line(path), ""
        for part in path:
            if isinstance(part, str):
                shown += f".{part}" if shown else part
            elif self.counts:
                shown += f"[{part}]"
        place = f"{self.file}:{line}: {shown}{': ' if shown else ''}"
        self.found.append((line, Text(f"{place}{text.en}", f"{place}{text.zh}")))

    def line(self, path: KeyPath) -> int:
        """The line of a key or an entry."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def unknown(self, path: KeyPath, allowed: Iterable[str]) -> None:
        """Note a key that does not exist."""
        names = list(allowed)
        near = difflib.get_close_matches(str(path[-1]), names, 1)
        listed = ", ".join(names)
        allowed_keys = Text(f"allowed are {listed}", f"允许的有 {listed}")
        self.add(path, then(then(Text("unknown", "未知"), did_you_mean(near)), allowed_keys))

    def raise_if_any(self) -> None:
        """Raise all mistakes as one error, in the order of the file."""
        if not self.found:
            return
        shown = [text for _, text in sorted(self.found, key=lambda item: item[0])]
        left = len(shown) - _MOST
        more = Text(f"{self.file}: and {left} more mistakes", f"{self.file}：另有 {left} 处错误")
        raise RuleFileError(*shown[:_MOST], *([more] if left > 0 else ()))


# Checks of the pieces of Python that a rule file holds.


def is_dotted_name(text: str) -> bool:
    """Whether a text can be a name with its module."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


def parsed_argument(text: str) -> ast.expr | ast.keyword | None:
    """What a text is as the one argument of a call; None if it is none."""
    call = parsed(f"f({text}\n)")
    if not isinstance(call, ast.Call) or len(call.args) + len(call.keywords) != 1:
        return None
    return call.args[0] if call.args else call.keywords[0]


def parsed_import(text: str) -> ast.Import | ast.ImportFrom | None:
    """What a text is as an import statement; None if it is none."""
    try:
        (statement,) = ast.parse(text).body
    except _NO_PYTHON:
        return None
    return statement if isinstance(statement, (ast.Import, ast.ImportFrom)) else None


def positional_names(signature: str) -> tuple[str, ...] | None:
    """The arguments of `f(a, b, c=1)` that can be given by position; None if that is no signature."""
    _, opened, rest = signature.partition("(")
    try:
        (function,) = ast.parse(f"def f({rest if opened else signature + ')'}: ...").body
    except _NO_PYTHON:
        return None
    if not isinstance(function, ast.FunctionDef):
        return None
    return tuple(argument.arg for argument in (*function.args.posonlyargs, *function.args.args))


def module_of(name: str) -> str:
    """The module that holds a dotted name: what stands before the last word, and before a class."""
    parts = name.split(".")
    for number, part in enumerate(parts):
        if number == len(parts) - 1 or part[:1].isupper():
            return ".".join(parts[: max(number, 1)])
    return name
