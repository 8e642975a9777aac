"""What a name in a file stands for: its dotted path, found through imports, simple aliases and scopes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .tree import FUNCTIONS, SCOPES, Scope, Tree

# Names that a star import of torch or of a project's own prelude usually brings.
COMMON = {"torch": "torch", "nn": "torch.nn", "dist": "torch.distributed"}


@dataclass
class Bindings:
    """What one scope binds: imported paths, values assigned, everything else by name."""

    imports: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        """Whether the scope binds the name at all."""
        return name in self.imports or name in self.values or name in self.others


class Names:
    """The bindings of every scope of a file."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.scopes: dict[ast.AST, Bindings] = {}
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.star = False
        self.import_lines: dict[str, set[int]] = {}
        for node in ast.walk(tree.root):
            self._collect(node)

    def _scope(self, node: ast.AST) -> Bindings:
        owner = self.tree.enclosing(node, SCOPES) or self.tree.root
        return self.scopes.setdefault(owner, Bindings())

    def _collect(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._imports(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(node, target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node, node.target, node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            bindings = self._scope(node)
            if not bindings.has(node.id):
                bindings.others.add(node.id)
        elif isinstance(node, ast.arg):
            owner = self.tree.enclosing(node, (*FUNCTIONS, ast.Lambda))
            if owner is not None:
                self.scopes.setdefault(owner, Bindings()).others.add(node.arg)
        elif isinstance(node, FUNCTIONS):
            self._scope(node).others.add(node.name)
            self.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            self._scope(node).others.add(node.name)
            self.classes[node.name] = node

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        table = self._scope(node).imports
        for alias in node.names:
            if alias.name == "*":
                self.star = True
                continue
            path = alias_path(node, alias)
            if isinstance(node, ast.Import) and not alias.asname:
                local = path = alias.name.split(".")[0]
            else:
                local = alias.asname or alias.name
            table.setdefault(local, []).append(path)
            full = alias_path(node, alias)
            self.import_lines.setdefault(full, set()).update(
                range(node.lineno, (node.end_lineno or node.lineno) + 1)
            )

    def _assign(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._scope(node).values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Call):
            for item in target.elts[:1]:  # `cupy, has_cupy = optional_import("cupy")`
                if isinstance(item, ast.Name):
                    self._scope(node).values.setdefault(item.id, []).append(value)

    def resolve(self, node: ast.AST, depth: int = 0) -> str | None:
        """The dotted path of a Name or Attribute chain; None where its root is a user's variable."""
        if isinstance(node, ast.Attribute):
            if node.attr == "torch" and isinstance(node.value, ast.Name) and node.value.id == "self":
                return "torch"  # `import torch; self.torch = torch`, to import it late
            base = self.resolve(node.value, depth)
            return f"{base}.{node.attr}" if base else None
        if isinstance(node, ast.Name):
            return self._lookup(node, depth)
        return None

    def _lookup(self, node: ast.Name, depth: int) -> str | None:
        for scope in self.tree.scopes(node):
            bindings = self.scopes.get(scope)
            if bindings is None or not bindings.has(node.id):
                continue
            if node.id in bindings.imports:
                return bindings.imports[node.id][0]
            for value in bindings.values.get(node.id, ()) if depth < 4 else ():
                path = self._value_path(value, depth)
                if path:
                    return path
            return "torch" if node.id == "torch" and node.id in bindings.values else None
        if node.id == "torch" or self.star:
            return COMMON.get(node.id)
        return None

    def _value_path(self, value: ast.expr, depth: int) -> str | None:
        if isinstance(value, (ast.Name, ast.Attribute)):
            path = self.resolve(value, depth + 1)
            return None if path is None or _is_data(path) else path
        if isinstance(value, ast.Call) and value.args:
            return lazy_import(value)
        return None

    def is_local(self, node: ast.Name) -> Scope | None:
        """The scope that binds a name, if any does."""
        for scope in self.tree.scopes(node):
            bindings = self.scopes.get(scope)
            if bindings is not None and bindings.has(node.id):
                return scope
        return None


def _is_data(path: str) -> bool:
    """Whether a path names a value (a version, a constant), so that a variable given it is no alias of a module."""
    last = path.rsplit(".", 1)[-1]
    return path.startswith("torch.version") or last.startswith("__") or (last.isupper() and "." in path)


def alias_path(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """The full dotted path that one imported name stands for; relative ones start with a dot."""
    if isinstance(node, ast.Import):
        return alias.name
    return f"{module_path(node)}.{alias.name}"


def module_path(node: ast.ImportFrom) -> str:
    """The module of a from-import; relative ones start with a dot."""
    return "." * node.level + (node.module or "")


def called(node: ast.expr) -> str:
    """The last part of a callee's name: `foo` of `a.b.foo(...)`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def lazy_import(call: ast.Call) -> str | None:
    """The module that `importlib.import_module("x")`, `optional_import("x", name="y")` and the like bring."""
    name = called(call.func).lower()
    first = call.args[0] if call.args else None
    if "import" not in name or not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None
    for keyword in call.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return f"{first.value}.{keyword.value.value!s}"
    return first.value
