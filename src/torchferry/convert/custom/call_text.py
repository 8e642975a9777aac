"""Where the arguments of a call stand in the text, with their parentheses and commas."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from torchferry.source.module import PythonModule

_COMMENT = re.compile(rb"#[^\r\n]*")
_SPACE = b" \t\r\n\f\\"


@dataclass(frozen=True)
class Argument:
    """One argument of a call."""

    node: ast.expr | ast.keyword
    start: int  # with a keyword's name, stars and parentheses
    end: int
    value_start: int
    value_end: int
    comma: int | None  # where the comma behind it stands

    @property
    def name(self) -> str | None:
        return self.node.arg if isinstance(self.node, ast.keyword) else None

    @property
    def value(self) -> ast.expr:
        return self.node.value if isinstance(self.node, ast.keyword) else self.node


@dataclass(frozen=True)
class CallText:
    """A call as it is written."""

    module: PythonModule
    call: ast.Call
    arguments: tuple[Argument, ...]  # in the order of the text
    opening: int  # right behind the parenthesis
    closing: int

    @property
    def positional(self) -> list[Argument]:
        """The arguments that have a position: those before the first `*values`."""
        found: list[Argument] = []
        for argument in self.arguments:
            if isinstance(argument.node, ast.Starred):
                break
            if not isinstance(argument.node, ast.keyword):
                found.append(argument)
        return found

    @property
    def has_stars(self) -> bool:
        """Whether `*values` is among the arguments, so that positions behind it are not known."""
        return any(isinstance(argument.node, ast.Starred) for argument in self.arguments)

    @property
    def has_options(self) -> bool:
        """Whether `**options` is among the arguments, so that any name may be given."""
        return any(isinstance(item.node, ast.keyword) and item.name is None for item in self.arguments)

    def keyword(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)

    def text(self, argument: Argument) -> str:
        return self.module.data[argument.value_start : argument.value_end].decode("utf-8")


def call_text(module: PythonModule, call: ast.Call) -> CallText:
    """Find the arguments of a call in the text."""
    nodes: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=module.start)
    closing = module.end(call) - 1
    spans = [_value_span(module, call, node) for node in nodes]
    first = spans[0][0] if spans else closing
    opening = _find(module, b"(", module.end(call.func), max(first, closing)) + 1
    arguments: list[Argument] = []
    begin = opening
    for number, (node, (start, end)) in enumerate(zip(nodes, spans, strict=True)):
        behind = spans[number + 1][0] if number + 1 < len(spans) else closing
        comma = _find(module, b",", end, behind)
        until = comma if comma >= 0 else closing
        arguments.append(
            Argument(
                node,
                _skip(module, begin, start),
                end + len(_blank(module, end, until).rstrip(_SPACE)),
                start,
                end,
                comma if comma >= 0 else None,
            )
        )
        begin = until + 1
    return CallText(module, call, tuple(arguments), opening, closing)


def _value_span(module: PythonModule, call: ast.Call, node: ast.expr | ast.keyword) -> tuple[int, int]:
    value = node.value if isinstance(node, ast.keyword) else node
    start, end = module.start(value), module.end(value)
    if isinstance(value, ast.GeneratorExp) and end == module.end(call):
        return start + 1, end - 1  # `f(x for x in y)`: the parentheses are the call's
    return start, end


def _blank(module: PythonModule, start: int, end: int) -> bytes:
    """Text between arguments with its comments blanked out."""
    return _COMMENT.sub(lambda match: b" " * len(match.group()), module.data[start:end])


def _find(module: PythonModule, sign: bytes, start: int, end: int) -> int:
    found = _blank(module, start, end).find(sign)
    return start + found if found >= 0 else -1


def _skip(module: PythonModule, start: int, end: int) -> int:
    """The first byte of code."""
    text = _blank(module, start, end)
    return start + len(text) - len(text.lstrip(_SPACE))
