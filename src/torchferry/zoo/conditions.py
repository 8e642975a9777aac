"""Under which conditions the lines of a module run: code that never does, and options that switch it on."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property

from torchferry.source.module import PythonModule


class Conditions:
    """What the `if`s of a module say of its lines."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree

    def is_dead(self, line: int) -> bool:
        """Whether a line stands under `if False:` or its like."""
        return any(
            first <= line <= last and self.value(test) is not None and self.value(test) is not wanted
            for first, last, test, wanted in self._branches
        )

    def tests(self, line: int) -> list[ast.expr]:
        """What must hold for a line to run."""
        return [test for first, last, test, wanted in self._branches if first <= line <= last and wanted]

    def value(self, test: ast.expr) -> bool | None:
        """Whether a test holds, where it is written out; None: only the run knows."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.Name):
            return self._flags.get(test.id)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.value(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            decides = isinstance(test.op, ast.Or)
            values = [self.value(each) for each in test.values]
            if decides in values:
                return decides
            return None if None in values else not decides
        return None

    @cached_property
    def _branches(self) -> list[tuple[int, int, ast.expr, bool]]:
        found = []
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.If, ast.While)):
                for body, wanted in ((node.body, True), (node.orelse, False)):
                    if body:
                        found.append((body[0].lineno, body[-1].end_lineno or 0, node.test, wanted))
        return found

    @cached_property
    def _flags(self) -> dict[str, bool]:
        """Names that the module binds once, to True or False."""
        bound: dict[str, list[ast.expr | None]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        bound.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.setdefault(node.id, [])
            elif isinstance(node, ast.arg):
                bound.setdefault(node.arg, []).append(None)
        return {
            name: bool(values[0].value)
            for name, values in bound.items()
            if len(values) == 1 and isinstance(values[0], ast.Constant) and isinstance(values[0].value, bool)
        }


def options_off_by_default(modules: Mapping[str, PythonModule]) -> dict[str, str]:
    """Options that switch something on, by the attribute that they set."""
    found = {}
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                option = _option(node) if node.func.attr == "add_argument" else ""
                if option and _is_off(node):
                    found[_attribute(node, option)] = option
    return found


def _option(call: ast.Call) -> str:
    """The longest name, as argparse chooses it too."""
    names = [
        word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]
    long = [name for name in names if name.startswith("--")]
    return long[0] if long else ""


def _is_off(call: ast.Call) -> bool:
    words = {word.arg: word.value for word in call.keywords}
    default, action = words.get("default"), words.get("action")
    if default is not None:
        return isinstance(default, ast.Constant) and default.value is False
    return isinstance(action, ast.Constant) and action.value == "store_true"


def _attribute(call: ast.Call, option: str) -> str:
    for word in call.keywords:
        if word.arg == "dest" and isinstance(word.value, ast.Constant):
            return str(word.value.value)
    return option.removeprefix("--").replace("-", "_")
