"""Losses that autocast refuses: binary cross entropy of probabilities, whose logarithms need float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.blocks import FUNCTIONS
from torchferry.convert.program import Program, Routine, calls_in, last_name, positional
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule

_FUNCTIONS = frozenset({"torch.nn.functional.binary_cross_entropy", "torch.binary_cross_entropy"})
_CLASSES = frozenset({"torch.nn.BCELoss", "torch.nn.modules.loss.BCELoss", "torch.nn.modules.BCELoss"})
_PASSES = 3  # variables that are handed on to functions that hand them on
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


class UnsafeLosses:
    """Knows the calls of a module that autocast refuses."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._names: set[str] = set()  # of variables and attributes that hold such a loss
        self._parameters: set[tuple[ast.AST, str]] = set()  # of functions that are given one
        if b"BCELoss" in program.module.data:
            self._find_variables()
            for _ in range(_PASSES):
                self._find_parameters()

    def calls(self, statement: ast.stmt, routine: Routine) -> list[ast.Call]:
        """The refused calls of a statement, without those of its blocks."""
        return [call for call in calls_in(statement) if self.is_refused(call, routine)]

    def is_refused(self, call: ast.Call, routine: Routine) -> bool:
        function = call.func
        if isinstance(function, ast.Call):
            return self.program.qualified(function.func, routine) in _CLASSES
        return self.program.qualified(function, routine) in _FUNCTIONS or self._holds(function, routine)

    def _holds(self, node: ast.expr, routine: Routine) -> bool:
        name = last_name(node)
        if isinstance(node, ast.Name) and (routine, name) in self._parameters:
            return True
        if isinstance(node, ast.Name) and routine in self.program.scopes:
            scope = self.program.scopes[routine].owner_of(name)
            if scope is not None and isinstance(scope.node, FUNCTIONS) and name in positional(scope.node):
                return (scope.node, name) in self._parameters
        return isinstance(node, (ast.Name, ast.Attribute)) and name in self._names

    def _find_variables(self) -> None:
        for statement in self.program.statements:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                routine = self.program.routine_of(statement)
                made = any(
                    isinstance(node, ast.Call) and self.program.qualified(node.func, routine) in _CLASSES
                    for node in ast.walk(statement.value)
                )
                called = isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Call)
                if made and not called:
                    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                    self._names.update(filter(None, map(last_name, targets)))

    def _find_parameters(self) -> None:
        """train(model, criterion): what the function calls `criterion` is what its callers hand over."""
        for statement in self.program.statements:
            routine = self.program.routine_of(statement)
            for call in calls_in(statement):
                function = self.program.definition(call.func, routine)
                if isinstance(function, ast.ClassDef):
                    function = next((item for item in function.body if _is_init(item)), None)
                if not isinstance(function, FUNCTIONS):
                    continue
                names = positional(function)
                if names[:1] == ["self"]:
                    names = names[1:]
                given = [
                    *zip(names, call.args, strict=False),
                    *((k.arg or "", k.value) for k in call.keywords),
                ]
                for name, value in given:
                    if isinstance(value, (ast.Name, ast.Attribute)) and self._holds(value, routine):
                        self._parameters.add((function, name))
        self._hand_on_attributes()

    def _hand_on_attributes(self) -> None:
        """self.criterion = criterion"""
        for statement in self.program.statements:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
                if (self.program.routine_of(statement), statement.value.id) in self._parameters:
                    self._names.update(filter(None, map(last_name, statement.targets)))


def _is_init(item: ast.stmt) -> bool:
    return isinstance(item, FUNCTIONS) and item.name == "__init__"


def tensors_of(call: ast.Call) -> list[ast.expr]:
    """The two tensors that a refused loss compares: what was predicted, and the target."""
    named = [keyword.value for keyword in call.keywords if keyword.arg in ("input", "target")]
    return [*(item for item in call.args[:2] if not isinstance(item, ast.Starred)), *named][:2]


def as_float(module: PythonModule, node: ast.expr) -> Iterator[Edit]:
    """Edits that make an expression float32."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "float":
        return
    start, end = module.start(node), module.end(node)
    if isinstance(node, _SIMPLE):
        yield Edit(end, end, ".float()")
    else:
        yield Edit(start, start, "(")
        yield Edit(end, end, ").float()")
