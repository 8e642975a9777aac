"""Scopes of a module and what their names are bound to, from its statements alone.

Expressions are not visited: names that only expressions bind (comprehensions, lambdas) are the walker's business.
That makes this pass several times cheaper than a walk of the whole tree.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple


class BindingKind(Enum):
    IMPORT = "import"
    ASSIGN = "assign"
    PARAMETER = "parameter"
    DEFINITION = "definition"
    OTHER = "other"  # loop variable, with ... as, except ... as, del


class Binding(NamedTuple):
    """One place where a name gets a value."""

    kind: BindingKind
    node: ast.AST
    line: int
    qualified: str = ""  # of an import: the dotted name that is imported
    value: ast.expr | None = None  # of an assignment
    weak: bool = False  # a stand-in: in an except block, or a bare constant


@dataclass
class Scope:
    """A module, class or function body."""

    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)  # names declared global or nonlocal here

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def bind(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)

    def owner_of(self, name: str) -> Scope | None:
        """The scope in which Python would look this name up."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if name in scope.bindings and name not in scope.elsewhere and (first or not scope.is_class):
                return scope
            scope = scope.parent
            first = False
        return None


class Unit(NamedTuple):
    """A piece of a statement that holds expressions: a simple statement, or the head of a compound one."""

    node: ast.AST
    statement: ast.stmt
    scope: Scope
    first_line: int
    last_line: int


@dataclass
class ModuleScopes:
    """All scopes and units of a module, and the modules that it star-imports."""

    root: Scope
    scopes: list[Scope]
    units: list[Unit]
    imports: list[tuple[str, Binding]]  # every name that an import binds, in any scope
    stars: list[str]
    modules: set[str] = field(default_factory=set)  # what `import a.b.c` names in full
    unread: list[Scope] = field(default_factory=list)  # functions whose bodies nobody has asked for yet

    def read(self, lines: list[int]) -> None:
        """Visit the functions that hold one of these (sorted) lines and were left out so far."""
        while True:
            wanted = [scope for scope in self.unread if _holds_line(scope.node, lines)]
            if not wanted:
                return
            self.unread = [scope for scope in self.unread if scope not in wanted]
            builder = _Builder(self, lines)
            for scope in wanted:
                builder.visit_body(scope.node.body, scope, weak=False)


def build_scopes(tree: ast.Module, lines: list[int] | None = None) -> ModuleScopes:
    """Visit the statements of a module once; given (sorted) lines, not those of functions without any of them."""
    root = Scope(tree, None)
    result = ModuleScopes(root, [root], [], [], [])
    _Builder(result, lines).visit_body(tree.body, root, weak=False)
    return result


def any_line_in(lines: list[int], first: int, last: int) -> bool:
    """Whether a sorted list of lines has one in [first, last]."""
    index = bisect_left(lines, first)
    return index < len(lines) and lines[index] <= last


def _holds_line(node: ast.AST, lines: list[int]) -> bool:
    return any_line_in(lines, node.lineno, node.end_lineno)  # type: ignore[attr-defined]


def import_qualifier(node: ast.ImportFrom) -> str:
    """The dotted prefix of what a from-import names; relative imports begin with a dot."""
    return "." * node.level + (node.module or "")


def qualified_in(prefix: str, name: str) -> str:
    """The dotted name of what a module holds, by the prefix of a from-import."""
    return f"{prefix}{name}" if prefix.endswith(".") else f"{prefix}.{name}"


def imported_modules(node: ast.AST) -> list[str]:
    """The modules that an import statement names; none for a relative import, or for any other statement."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


class _Builder:
    def __init__(self, result: ModuleScopes, lines: list[int] | None) -> None:
        self.result = result
        self.lines = lines

    def visit_body(self, body: list[ast.stmt], scope: Scope, weak: bool) -> None:
        for statement in body:
            handler = _HANDLERS.get(type(statement))
            if handler is None:
                self.add_unit(statement, statement, scope)
            else:
                handler(self, statement, scope, weak)

    def add_unit(self, node: Any, statement: ast.stmt, scope: Scope) -> None:
        if node is not None:
            self.result.units.append(Unit(node, statement, scope, node.lineno, node.end_lineno))

    def bind_target(self, target: ast.AST, scope: Scope, value: ast.expr | None, weak: bool) -> None:
        if isinstance(target, ast.Name):
            kind = BindingKind.ASSIGN if value is not None else BindingKind.OTHER
            weak = weak or isinstance(value, ast.Constant)
            scope.bind(target.id, Binding(kind, target, target.lineno, value=value, weak=weak))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self.bind_target(element, scope, None, weak)
        elif isinstance(target, ast.Starred):
            self.bind_target(target.value, scope, None, weak)

    def bind_import(self, name: str, binding: Binding, scope: Scope) -> None:
        scope.bind(name, binding)
        self.result.imports.append((name, binding))

    def visit_import(self, node: ast.Import, scope: Scope, weak: bool) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            qualified = alias.name if alias.asname else name
            self.result.modules.add(alias.name)
            self.bind_import(
                name, Binding(BindingKind.IMPORT, node, node.lineno, qualified, weak=weak), scope
            )
        self.add_unit(node, node, scope)

    def visit_import_from(self, node: ast.ImportFrom, scope: Scope, weak: bool) -> None:
        prefix = import_qualifier(node)
        for alias in node.names:
            if alias.name == "*":
                self.result.stars.append(prefix)
                self.result.imports.append(("*", Binding(BindingKind.IMPORT, node, node.lineno, prefix)))
                continue
            qualified = qualified_in(prefix, alias.name)
            binding = Binding(BindingKind.IMPORT, node, node.lineno, qualified, weak=weak)
            self.bind_import(alias.asname or alias.name, binding, scope)
        self.add_unit(node, node, scope)

    def visit_assign(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope, weak: bool
    ) -> None:
        value = None if isinstance(node, ast.AugAssign) else node.value
        if node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.bind_target(target, scope, value, weak)
        self.add_unit(node, node, scope)

    def visit_global(self, node: ast.Global | ast.Nonlocal, scope: Scope, weak: bool) -> None:
        scope.elsewhere.update(node.names)

    def visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, weak: bool) -> None:
        scope.bind(node.name, Binding(BindingKind.DEFINITION, node, node.lineno, weak=weak))
        for decorator in node.decorator_list:
            self.add_unit(decorator, node, scope)
        inner = Scope(node, scope)
        self.result.scopes.append(inner)
        for argument in all_arguments(node.args):
            inner.bind(argument.arg, Binding(BindingKind.PARAMETER, argument, argument.lineno))
            self.add_unit(argument.annotation, node, scope)
        # One unit per default, so that its parameter is found by position in `node.args`.
        for default in (*node.args.defaults, *node.args.kw_defaults):
            self.add_unit(default, node, scope)
        self.add_unit(node.returns, node, scope)
        if self.lines is None or _holds_line(node, self.lines):
            self.visit_body(node.body, inner, weak=False)
        else:
            self.result.unread.append(inner)

    def visit_class(self, node: ast.ClassDef, scope: Scope, weak: bool) -> None:
        scope.bind(node.name, Binding(BindingKind.DEFINITION, node, node.lineno, weak=weak))
        for expression in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.add_unit(expression, node, scope)
        inner = Scope(node, scope)
        self.result.scopes.append(inner)
        self.visit_body(node.body, inner, weak=False)

    def visit_if(self, node: ast.If | ast.While, scope: Scope, weak: bool) -> None:
        self.add_unit(node.test, node, scope)
        self.visit_body(node.body, scope, weak)
        self.visit_body(node.orelse, scope, weak)

    def visit_for(self, node: ast.For | ast.AsyncFor, scope: Scope, weak: bool) -> None:
        self.bind_target(node.target, scope, None, weak)
        self.add_unit(node.iter, node, scope)
        self.visit_body(node.body, scope, weak)
        self.visit_body(node.orelse, scope, weak)

    def visit_with(self, node: ast.With | ast.AsyncWith, scope: Scope, weak: bool) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self.bind_target(item.optional_vars, scope, None, weak)
            self.add_unit(item.context_expr, node, scope)
        self.visit_body(node.body, scope, weak)

    def visit_try(self, node: ast.Try, scope: Scope, weak: bool) -> None:
        self.visit_body(node.body, scope, weak)
        for handler in node.handlers:
            self.add_unit(handler.type, node, scope)
            if handler.name:
                scope.bind(handler.name, Binding(BindingKind.OTHER, handler, handler.lineno, weak=True))
            self.visit_body(handler.body, scope, weak=True)
        self.visit_body(node.orelse, scope, weak)
        self.visit_body(node.finalbody, scope, weak)

    def visit_match(self, node: ast.Match, scope: Scope, weak: bool) -> None:
        self.add_unit(node.subject, node, scope)
        for case in node.cases:
            self.add_unit(case.pattern, node, scope)
            self.add_unit(case.guard, node, scope)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    scope.bind(name, Binding(BindingKind.OTHER, case, case.pattern.lineno))
            self.visit_body(case.body, scope, weak)


def all_arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    """Every parameter of a function or lambda."""
    yield from arguments.posonlyargs
    yield from arguments.args
    yield from arguments.kwonlyargs
    if arguments.vararg:
        yield arguments.vararg
    if arguments.kwarg:
        yield arguments.kwarg


_HANDLERS: dict[type[ast.stmt], Callable[[_Builder, Any, Scope, bool], None]] = {
    ast.Import: _Builder.visit_import,
    ast.ImportFrom: _Builder.visit_import_from,
    ast.Assign: _Builder.visit_assign,
    ast.AnnAssign: _Builder.visit_assign,
    ast.AugAssign: _Builder.visit_assign,
    ast.Global: _Builder.visit_global,
    ast.Nonlocal: _Builder.visit_global,
    ast.FunctionDef: _Builder.visit_function,
    ast.AsyncFunctionDef: _Builder.visit_function,
    ast.ClassDef: _Builder.visit_class,
    ast.If: _Builder.visit_if,
    ast.While: _Builder.visit_if,
    ast.For: _Builder.visit_for,
    ast.AsyncFor: _Builder.visit_for,
    ast.With: _Builder.visit_with,
    ast.AsyncWith: _Builder.visit_with,
    ast.Try: _Builder.visit_try,
    ast.Match: _Builder.visit_match,
}
if hasattr(ast, "TryStar"):  # Python 3.11
    _HANDLERS[ast.TryStar] = _Builder.visit_try
