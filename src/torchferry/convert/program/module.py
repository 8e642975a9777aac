"""A module as restructuring passes see it: its statements, its scopes, and what names and calls stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from torchferry.convert.program.blocks import FUNCTIONS, StatementTree, heads_of, statements_below
from torchferry.convert.site import FileContext
from torchferry.source.scopes import BindingKind, Scope

Routine = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


def text_of(node: ast.AST) -> str:
    """An expression in one spelling, to tell whether two are the same."""
    return ast.unparse(node)


def calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement, without those of its blocks, of lambdas and of definitions."""
    waiting = list(heads_of(statement))[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            yield node
        waiting.extend(list(ast.iter_child_nodes(node))[::-1])


def method_of(call: ast.Call) -> str:
    """The name of the method that a call calls, "" if it calls something else."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


class ProgramModule:
    """One module."""

    def __init__(self, context: FileContext) -> None:
        self.context = context
        self.module = context.module
        # All functions: another look at this module may have read only those of interest to it.
        self.module.focus(list(range(1, len(self.module.line_starts) + 1)))
        self.tree = StatementTree(context.module)

    @cached_property
    def scopes(self) -> dict[ast.AST, Scope]:
        return {scope.node: scope for scope in self.module.scopes.scopes}

    @cached_property
    def routines(self) -> list[Routine]:
        """The module itself and all its functions."""
        found: list[Routine] = [self.module.tree]
        found += [node for node in statements_below(self.module.tree, True) if isinstance(node, FUNCTIONS)]
        return found

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Every statement, whatever it lies in."""
        return list(statements_below(self.module.tree, into_definitions=True))

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Every name that the module uses in any way, to find one that is free."""
        found: set[str] = set()
        for node in ast.walk(self.module.tree):
            for name in ("id", "attr", "arg", "name", "asname"):
                value = getattr(node, name, None)
                if isinstance(value, str):
                    found.add(value.partition(".")[0])
        return frozenset(found)

    def free_name(self, *choices: str) -> str:
        """The first of these names that the module does not use, or one with a number."""
        numbered = (f"{choices[0]}_{number}" for number in range(2, 1000))
        return next(name for name in (*choices, *numbered) if name not in self.identifiers)

    def routine_of(self, statement: ast.stmt) -> Routine:
        """The function around a statement, or the module."""
        return self.tree.holder(statement, *FUNCTIONS)  # type: ignore[return-value]

    def class_of(self, routine: Routine) -> ast.ClassDef | None:
        """The class that a function is a method of."""
        if isinstance(routine, ast.Module):
            return None
        parent = self.tree.position(routine).parent
        return parent if isinstance(parent, ast.ClassDef) else None

    def scope_of(self, statement: ast.stmt) -> Scope:
        return self.scopes[self.routine_of(statement)]

    def qualified(self, node: ast.expr, routine: Routine) -> str:
        """The dotted name that an expression stands for, "" if it has none."""
        resolved = self.module.resolve(node, self.scopes[routine])
        return resolved.qualified if resolved else ""

    def assignments(self, name: str) -> Iterator[tuple[ast.stmt, ast.expr]]:
        """Every statement that gives a variable or an attribute of this (last) name a value, with the value."""
        for statement in self.statements:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if any(last_name(target) == name for target in targets):
                    yield statement, statement.value

    def definition(self, node: ast.expr, routine: Routine) -> ast.AST | None:
        """The function or class that an expression names: of this module, of `self`, or of a module beside it."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            owner = self.class_of(routine)
            methods = owner.body if owner else []
            return next(
                (item for item in methods if isinstance(item, FUNCTIONS) and item.name == node.attr), None
            )
        if isinstance(node, ast.Name):
            binding = self.module.binding_of(node.id, self.scopes[routine], node.lineno)
            if binding is not None and binding.kind is BindingKind.DEFINITION:
                return binding.node
        qualified = self.qualified(node, routine)
        found = self.context.neighbours.find(self.context.path, qualified) if qualified else None
        return found.binding.node if found and not found.attributes else None

    def effects(self, statement: ast.stmt) -> set[str]:
        """The attributes of `self` that the methods which a statement calls set."""
        found: set[str] = set()
        for call in calls_in(statement):
            if isinstance(call.func, ast.Attribute) and text_of(call.func.value) == "self":
                method = self.definition(call.func, self.routine_of(statement))
                if isinstance(method, FUNCTIONS):
                    found |= attributes_set(method)
        return found


def attributes_set(routine: ast.AST) -> set[str]:
    """The attributes of `self` that a method sets itself, as self.name."""
    return {
        f"self.{node.attr}"
        for node in ast.walk(routine)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def last_name(node: ast.AST) -> str:
    """The last name of a variable or an attribute; that of what is indexed."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def positional(routine: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names of the parameters that have a position."""
    return [item.arg for item in (*routine.args.posonlyargs, *routine.args.args)]
