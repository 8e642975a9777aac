"""A file's syntax tree with parents, and an index from text offsets to nodes (also inside f-strings)."""

from __future__ import annotations

import ast
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from .text import Lines, Token, string_parts, tokens

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class UnparsedError(Exception):
    """The file is no Python that this interpreter can parse."""


@dataclass
class Word:
    """A piece of the file where trigger words are looked for: a name, a text part of a string, a comment."""

    kind: str
    start: int
    end: int
    text: str
    string: ast.expr | None = None


@dataclass
class Tree:
    """The parsed file."""

    text: str
    lines: Lines = field(init=False)
    root: ast.Module = field(init=False)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    at: dict[int, ast.AST] = field(default_factory=dict)
    words: list[Word] = field(default_factory=list)
    statements: list[tuple[int, int]] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = Lines(self.text)
        try:
            self.root = ast.parse(self.text)
            self._index(self.root, self.lines, 0)
        except (SyntaxError, ValueError, RecursionError, tokenize.TokenError) as error:
            raise UnparsedError(str(error)) from error
        self.statements = sorted(self._spans())
        self.imports = [
            node for node in ast.walk(self.root) if isinstance(node, (ast.Import, ast.ImportFrom))
        ]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node."""
        return self.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        above = self.parents.get(node)
        while above is not None:
            yield above
            above = self.parents.get(above)

    def scopes(self, node: ast.AST) -> Iterator[Scope]:
        """The scopes whose names a node can see, innermost first."""
        first = True
        for above in self.ancestors(node):
            if isinstance(above, ast.ClassDef) and not first:
                continue
            if isinstance(above, SCOPES):
                first = False
                yield above

    def enclosing(self, node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> ast.AST | None:
        """The nearest node around of one of the kinds."""
        return next((above for above in self.ancestors(node) if isinstance(above, kinds)), None)

    def span(self, line: int) -> tuple[int, int]:
        """The lines of the innermost statement (for a compound one: its head) that covers a line."""
        best = (line, line)
        at = bisect_right(self.statements, (line, 1 << 60))
        for first, last in reversed(self.statements[max(0, at - 40) : at]):
            if first <= line <= last:
                best = (first, last)
                break
        return best

    def _spans(self) -> Iterator[tuple[int, int]]:
        for node in ast.walk(self.root):
            if not isinstance(node, ast.stmt):
                continue
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            if isinstance(body, list) and body:
                inside = body[0]
                first_inside = min(
                    [getattr(inside, "lineno", node.lineno + 1)]
                    + [deco.lineno for deco in getattr(inside, "decorator_list", [])]
                )
                yield node.lineno, max(node.lineno, first_inside - 1)
                for deco in getattr(node, "decorator_list", []):
                    yield deco.lineno, deco.end_lineno or deco.lineno
            else:
                yield node.lineno, node.end_lineno or node.lineno

    def _index(self, root: ast.AST, lines: Lines, base: int) -> None:
        strings: list[tuple[int, int, ast.expr]] = []
        stack: list[tuple[ast.AST, bool]] = [(root, False)]
        while stack:
            node, in_fstring = stack.pop()
            inside = in_fstring or isinstance(node, ast.JoinedStr)
            for child in ast.iter_child_nodes(node):
                if not inside:
                    self.parents[child] = node
                    stack.append((child, False))
            self._note(node, lines, base, strings)
        strings.sort(key=lambda item: item[0])
        starts = [item[0] for item in strings]
        for token in tokens(lines):
            if token.kind != "string":
                self.words.append(Word(token.kind, base + token.start, base + token.end, token.text))
                continue
            found = bisect_right(starts, token.start) - 1
            owner = strings[found][2] if found >= 0 and token.start < strings[found][1] else None
            self._string(token, base, owner)

    def _note(self, node: ast.AST, lines: Lines, base: int, strings: list[tuple[int, int, ast.expr]]) -> None:
        if isinstance(node, ast.Name):
            self.at[base + lines.offset_of_bytes(node.lineno, node.col_offset)] = node
        elif isinstance(node, ast.Attribute):
            end = lines.offset_of_bytes(node.end_lineno or 0, node.end_col_offset or 0)
            self.at[base + end - len(node.attr)] = node
        elif isinstance(node, (ast.alias, ast.arg, ast.keyword)):
            self.at.setdefault(base + lines.offset_of_bytes(node.lineno, node.col_offset), node)
        elif isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        ):
            start = lines.offset_of_bytes(node.lineno, node.col_offset)
            strings.append(
                (start, lines.offset_of_bytes(node.end_lineno or 0, node.end_col_offset or 0), node)
            )

    def _string(self, token: Token, base: int, owner: ast.expr | None) -> None:
        for kind, start, end in string_parts(token.text):
            first, last = base + token.start + start, base + token.start + end
            piece = token.text[start:end]
            if kind == "text":
                self.words.append(Word("string", first, last, piece, owner))
                continue
            source = f"({piece}\n)"
            try:
                body = ast.parse(source, mode="eval").body
            except (SyntaxError, ValueError):
                self.words.append(Word("string", first, last, piece, owner))
                continue
            if owner is not None:
                self.parents[body] = owner
            self._index(body, Lines(source), first - 1)
