"""Lines of the program that Python's frames lead to: the function, and where its source leaves no doubt the line.

A frame of a trace has one line for all that its function does: the function's first one, or, for functions that were
running when the profiler began, the one that they were at. It is no line of a call.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from torchferry.traces.names import place_of

_FRAME = re.compile(r"(.+)\((\d+)\): (.+)$", re.DOTALL)
_BUILT_IN = re.compile(r"<built-in (?:method|function) (\w+)(?: of .*)?>$", re.DOTALL)
_MODULE = "<module>"
_LARGEST = 2_000_000  # bytes of a source
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Sources:
    """The program's files, as far as they are at hand and not younger than the trace."""

    def __init__(self, trace: Path, folders: Sequence[Path] = ()) -> None:
        self._trace = trace
        self._folders = (Path(), *folders)
        self._read: dict[str, ast.Module | None] = {}

    @cached_property
    def _written(self) -> float:
        try:
            return self._trace.stat().st_mtime
        except OSError:
            return 0.0

    def place(self, frame: str, called: str = "") -> str:
        """train.py:40(main) of `train.py(40): main`; train.py:47 if that calls what the frame `called` is of there only."""
        known, found = place_of(frame), _FRAME.match(frame)
        if not known or found is None:
            return known
        file, line, function = found[1], int(found[2]), found[3]
        exact = self._line(file, line, function, _called_name(called))
        return f"{file}:{exact}" if exact else f"{known}({function})"

    def _line(self, file: str, line: int, function: str, name: str) -> int:
        """The line at which a function calls that name; 0: not known."""
        if not name:
            return 0
        if file not in self._read:
            self._read[file] = self._parsed(file)
        tree = self._read[file]
        scopes = [] if tree is None else [each for each in _scopes(tree, function) if _spans(each, line)]
        if len(scopes) != 1:
            return 0
        uses = [node for node in _own_nodes(scopes[0]) if _name(node) == name]
        called = [node.func for node in _own_nodes(scopes[0]) if isinstance(node, ast.Call)]
        # One that is handed on, as in map(f, rows), may be called from elsewhere.
        return uses[0].end_lineno or 0 if len(uses) == 1 and uses[0] in called else 0

    def _parsed(self, file: str) -> ast.Module | None:
        """The syntax tree of a file; None: it is not there, not readable, or several files may be meant."""
        try:
            found = {path.resolve() for each in self._folders if (path := each / file).is_file()}
            if len(found) != 1 or not file.endswith(".py"):
                return None
            path = found.pop()
            told = path.stat()
            if told.st_size > _LARGEST or told.st_mtime > self._written:
                return None
            with (
                warnings.catch_warnings()
            ):  # what Python thinks of someone's escape sequences is not asked here
                warnings.simplefilter("ignore")
                return ast.parse(path.read_bytes())
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return None


def _called_name(frame: str) -> str:
    """item, of `<built-in method item of Tensor object at 0x7f00>`; backward, of `torch/_tensor.py(566): backward`."""
    found = _BUILT_IN.match(frame)
    if found:
        return found[1]
    function = _FRAME.match(frame)
    return function[3] if function else ""


def _scopes(tree: ast.Module, function: str) -> Iterator[_Scope]:
    if function == _MODULE:
        yield tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function:
            yield node


def _spans(scope: _Scope, line: int) -> bool:
    """Whether a line is one of its own; the first one of a function is that of its decorators."""
    if isinstance(scope, ast.Module):
        return True
    first = min([scope.lineno, *(each.lineno for each in scope.decorator_list)])
    return first <= line <= (scope.end_lineno or scope.lineno)


def _own_nodes(scope: _Scope) -> Iterator[ast.expr]:
    """The expressions that it evaluates itself, not those of functions in it."""
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr):
            yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
