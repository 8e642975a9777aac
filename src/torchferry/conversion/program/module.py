"""One module of the user's program: its statements, its scopes, and what names and calls stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from torchferry.conversion.program.blocks import DEFINITIONS, LOOPS, StatementTree, heads_of, statements_below
from torchferry.conversion.program.definitions import ImportedName, Lookup, ProjectDefinition
from torchferry.conversion.program.functions import ASSIGNMENTS, FUNCTIONS, FunctionNode, assigned_to
from torchferry.conversion.site import FileContext, enclosing_class
from torchferry.source.module import PythonModule
from torchferry.source.scopes import Binding, Scope
from torchferry.source.walk import child_nodes, evaluated_outside, rebound_by

Routine = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


def calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement, without those of its blocks, of lambdas and of definitions."""
    waiting = list(heads_of(statement))[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            yield node
        waiting.extend(child_nodes(node)[::-1])


def calls_below(node: ast.AST) -> Iterator[tuple[ast.stmt, ast.Call]]:
    """The calls of all statements inside a module, a function or a compound statement, each with its statement."""
    return ((statement, call) for statement in statements_below(node) for call in calls_in(statement))


def called_method(call: ast.Call) -> str:
    """The name of the method that a call calls, "" if it calls something else."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


class NodePlace(NamedTuple):
    """The surroundings of a node."""

    scope: Scope
    statement: ast.stmt
    parent: ast.AST | None


class ProgramModule:
    """One module of the user's program: its statements, its scopes, and where its nodes stand."""

    def __init__(self, path: str, module: PythonModule) -> None:
        self.path = path
        self.module = module
        # All functions: another look at this module may have read only those of interest to it.
        module.focus(list(range(1, len(module.line_starts) + 1)))

    @cached_property
    def tree(self) -> StatementTree:
        return StatementTree(self.module.tree)

    @cached_property
    def _surroundings(self) -> dict[ast.AST, NodePlace]:
        found: dict[ast.AST, NodePlace] = {}
        for unit in self.module.scopes.units:
            waiting: list[tuple[ast.AST, ast.AST | None]] = [(unit.node, None)]
            while waiting:
                node, parent = waiting.pop()
                found[node] = NodePlace(unit.scope, unit.statement, parent)
                waiting.extend([(child, node) for child in child_nodes(node)])
        return found

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Every call, in the order of the text."""
        found = [node for node in self._surroundings if isinstance(node, ast.Call)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Every statement, in the order of the text."""
        found = [node for node in ast.walk(self.module.tree) if isinstance(node, ast.stmt)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def scopes(self) -> dict[ast.AST, Scope]:
        """By function, class or module: its scope."""
        return {scope.node: scope for scope in self.module.scopes.scopes}

    def surroundings(self, node: ast.AST) -> NodePlace | None:
        return self._surroundings.get(node)

    def parent(self, node: ast.AST) -> ast.AST | None:
        surroundings = self._surroundings.get(node)
        return surroundings.parent if surroundings else None

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The statement in which an expression stands."""
        return self._surroundings[node].statement

    def scope_at(self, node: ast.AST) -> Scope:
        """The scope in which an expression is evaluated."""
        return self._surroundings[node].scope

    def owners(self, node: ast.AST) -> Iterator[ast.AST]:
        """The statements and branches around the statement of an expression, from the nearest to the module."""
        surroundings = self._surroundings.get(node)
        return self.tree.owners(surroundings.statement) if surroundings else iter(())

    def function_around(self, statement: ast.stmt) -> FunctionNode | None:
        """The function in which a statement stands."""
        return next((owner for owner in self.tree.owners(statement) if isinstance(owner, FUNCTIONS)), None)

    def loops_around(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        """The loops of the same function around a statement, the nearest first."""
        for owner in self.tree.owners(statement):
            if isinstance(owner, DEFINITIONS):
                return
            if isinstance(owner, LOOPS):
                yield owner

    def class_around(self, node: ast.AST) -> ast.ClassDef | None:
        """The class in which an expression stands, also in a method of it."""
        surroundings = self._surroundings.get(node)
        scope = enclosing_class(surroundings.scope) if surroundings else None
        return scope.node if scope and isinstance(scope.node, ast.ClassDef) else None

    def shadowed(self, node: ast.AST) -> frozenset[str]:
        """The names that comprehensions and lambdas around an expression bind anew."""
        found: frozenset[str] = frozenset()
        child, parent = node, self.parent(node)
        while parent is not None:
            around = self.parent(parent)
            if isinstance(parent, ast.comprehension) and evaluated_outside(parent, child, around):
                parent, around = around, self.parent(around) if around else None
            else:
                found |= rebound_by(parent)
            child, parent = parent or child, around
        return found

    def bindings(self, name: ast.Name) -> tuple[Scope | None, list[Binding]]:
        """The scope in which Python looks a name up, and all that is bound to the name there."""
        surroundings = self._surroundings.get(name)
        is_known = surroundings is not None and name.id not in self.shadowed(name)
        owner = surroundings.scope.owner_of(name.id) if surroundings and is_known else None
        return owner, owner.bindings[name.id] if owner else []

    def qualified(self, node: ast.expr) -> str:
        """The dotted name of an expression, through imports and aliases; "" if it has none."""
        surroundings = self._surroundings.get(node)
        resolved = self.module.resolve(node, surroundings.scope) if surroundings else None
        return resolved.qualified if resolved else ""

    def scope_of_statement(self, statement: ast.stmt) -> Scope:
        """The scope in which a statement runs."""
        owners = self.tree.owners(statement)
        return next(self.scopes[owner] for owner in owners if owner in self.scopes)


class PassModule(ProgramModule):
    """The module that a pass restructures, with the project around it."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context.path, context.module)
        self.context = context

    @cached_property
    def routines(self) -> list[Routine]:
        """The module itself and all its functions."""
        found: list[Routine] = [self.module.tree]
        return [*found, *(node for node in self.statements if isinstance(node, FUNCTIONS))]

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

    def qualified(self, node: ast.expr, routine: Routine | None = None) -> str:
        """The dotted name that an expression stands for, also if it were one of a certain function; "" if none."""
        if routine is None:
            return super().qualified(node)
        resolved = self.module.resolve(node, self.scopes[routine])
        return resolved.qualified if resolved else ""

    @property
    def statement_calls(self) -> Iterator[tuple[ast.stmt, ast.Call]]:
        """The calls of all statements, those of definitions included, each with its statement."""
        return ((statement, call) for statement in self.statements for call in calls_in(statement))

    def assignments(self, name: str) -> Iterator[tuple[ast.stmt, ast.expr]]:
        """Every statement that gives a variable or an attribute of this (last) name a value, with the value."""
        for statement in self.statements:
            if isinstance(statement, ASSIGNMENTS) and statement.value is not None:
                if any(last_name(target) == name for target in assigned_to(statement)):
                    yield statement, statement.value

    def callee(self, function: ast.expr, routine: Routine) -> ProjectDefinition[FileContext] | None:
        """The function or class of the project that an expression in a certain function names."""
        shadowed = self.shadowed(function)
        return self.lookup.definition(self.context, function, self.scopes[routine], shadowed)

    def imported_name(self, node: ast.expr, routine: Routine) -> ImportedName[FileContext] | None:
        """The name of another module that an expression in a certain function stands for."""
        return self.lookup.imported_name(self.context, node, self.scopes[routine], self.shadowed(node))

    @cached_property
    def lookup(self) -> Lookup[FileContext]:
        return Lookup(self.context.neighbours, self.context.beside)

    def definition(self, node: ast.expr, routine: Routine) -> FunctionNode | ast.ClassDef | None:
        """The same without where it is defined."""
        found = self.callee(node, routine)
        return found.node if found else None

    def effects(self, statement: ast.stmt) -> set[str]:
        """The attributes of `self` that the methods which a statement calls set."""
        found: set[str] = set()
        for call in calls_in(statement):
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self":
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
