"""Checks of the pieces of Python that a rule file holds."""

from __future__ import annotations

import ast
import keyword


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
