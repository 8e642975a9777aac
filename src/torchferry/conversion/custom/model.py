"""What a user's rule says, whichever format it was written in, and what is wrong with one."""

from __future__ import annotations

import ast
import difflib
import keyword
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.conversion.custom.template import Template
from torchferry.errors import RuleFileError
from torchferry.finding import Kind
from torchferry.text import Text

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

    @property
    def changes_calls(self) -> bool:
        return bool(self.arguments) or self.wrap is not None


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
        self.found: list[tuple[int, str]] = []

    def add(self, path: KeyPath, text: str) -> None:
        """Note a mistake at a key, or at the nearest thing around it that stands in the file."""
        line, shown = self.line(path), ""
        for part in path:
            if isinstance(part, str):
                shown += f".{part}" if shown else part
            elif self.counts:
                shown += f"[{part}]"
        self.found.append((line, f"{self.file}:{line}: {shown}{': ' if shown else ''}{text}"))

    def line(self, path: KeyPath) -> int:
        """The line of a key or an entry."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def unknown(self, path: KeyPath, allowed: Iterable[str]) -> None:
        """Note a key that does not exist."""
        names = list(allowed)
        near = difflib.get_close_matches(str(path[-1]), names, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        self.add(path, f"unknown{meant}; allowed are {', '.join(names)}")

    def raise_if_any(self) -> None:
        """Raise all mistakes as one error, in the order of the file."""
        if not self.found:
            return
        shown = [text for _, text in sorted(self.found, key=lambda item: item[0])]
        left = len(shown) - _MOST
        raise RuleFileError(*shown[:_MOST], *([f"{self.file}: and {left} more mistakes"] if left > 0 else ()))


# Checks of the pieces of Python that a rule file holds.


def is_dotted_name(text: str) -> bool:
    """Whether a text can be a name with its module."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


def parsed_argument(text: str) -> ast.expr | ast.keyword | None:
    """What a text is as the one argument of a call; None if it is none."""
    try:
        call = ast.parse(f"f({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(call, ast.Call) or len(call.args) + len(call.keywords) != 1:
        return None
    return call.args[0] if call.args else call.keywords[0]


def parsed_import(text: str) -> ast.Import | ast.ImportFrom | None:
    """What a text is as an import statement; None if it is none."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return statement if isinstance(statement, (ast.Import, ast.ImportFrom)) else None


def positional_names(signature: str) -> tuple[str, ...] | None:
    """The arguments of `f(a, b, c=1)` that can be given by position; None if that is no signature."""
    _, opened, rest = signature.partition("(")
    try:
        (function,) = ast.parse(f"def f({rest if opened else signature + ')'}: ...").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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
