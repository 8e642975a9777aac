"""What a rule sees: the file, the node it was called for, and shorthand for saying something about them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.settings import PassSettings
from torchferry.conversion.target import Target
from torchferry.finding import Kind, Wording
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule, Resolved
from torchferry.source.scopes import Scope
from torchferry.source.walk import WalkState

RenameTable = dict[str, tuple[Rule, Rename] | None]
NodeType = TypeVar("NodeType", bound=ast.AST)


def enclosing_class(scope: Scope | None) -> Scope | None:
    """The scope of the class around a scope."""
    while scope is not None and not scope.is_class:
        scope = scope.parent
    return scope


@dataclass(frozen=True)
class FileContext:
    """One module on its way to one target."""

    module: PythonModule
    path: str
    target: Target
    tracked: frozenset[str] = frozenset()  # dotted names whose uses a rule wants to see
    renames: tuple[Rule, ...] = field(default=(), repr=False)  # the rules that rename dotted names
    names: RenameTable = field(default_factory=dict, repr=False)  # their answers so far, for all files
    settings: PassSettings = PassSettings()
    neighbours: Neighbours = field(default_factory=Neighbours, repr=False)
    # What was worked out about nodes of this module, by their id: many strings in one long list ask the same.
    words: dict[int, frozenset[str]] = field(default_factory=dict, repr=False)
    positions: dict[int, dict[int, int]] = field(default_factory=dict, repr=False)
    resolved: dict[int, Resolved | None] = field(default_factory=dict, repr=False)  # by node
    # The modules that an edit needs and that are not imported: position of the edited place -> their names.
    needed_imports: dict[int, frozenset[str]] = field(default_factory=dict, repr=False)
    mentions: dict[str, tuple[Site[ast.AST], ...]] = field(default_factory=dict, repr=False)  # by name
    # The answers of those who follow values.
    answers: dict[tuple[Any, ...], bool] = field(default_factory=dict, repr=False)
    views: dict[str, FileContext | None] = field(default_factory=dict, repr=False)  # by path

    def beside(self, path: str) -> FileContext | None:
        """Another module of the project, looked at from this one; None if it can't be read."""
        self.views.setdefault(self.path, self)
        if path not in self.views:
            module, view = self.neighbours.module(path), None
            if module is not None:
                view = FileContext(module, path, self.target, neighbours=self.neighbours, views=self.views)
            self.views[path] = view
        return self.views[path]

    def propose(
        self,
        kind: Kind,
        node: ast.AST,
        message: Wording,
        *edits: Edit,
        needs_prelude: bool = False,
        url: str = "",
    ) -> Proposal:
        """Say something about a node."""
        start, end = self.module.start(node), self.module.end(node)
        return Proposal(kind, start, end, message, edits, needs_prelude, url)


@dataclass(frozen=True)
class Site(Generic[NodeType]):
    """A node that a rule asked for, with its surroundings."""

    context: FileContext
    node: NodeType
    place: WalkState

    @property
    def module(self) -> PythonModule:
        return self.context.module

    @property
    def target(self) -> Target:
        return self.context.target

    @property
    def scope(self) -> Scope:
        return self.place.scope

    @property
    def parent(self) -> ast.AST | None:
        return self.place.parent

    @property
    def name(self) -> str:
        """The dotted name of the node, or of the function that it calls; "" if it has none."""
        node = self.node.func if isinstance(self.node, ast.Call) else self.node
        return self.qualified(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""

    def resolve(self, node: ast.expr) -> Resolved | None:
        """What a name or attribute chain of this place stands for; every rule asks, so the answer is kept."""
        known = self.context.resolved
        key = id(node)
        if key not in known:
            known[key] = self.module.resolve(node, self.place.scope, self.place.shadowed)
        return known[key]

    def qualified(self, node: ast.expr) -> str:
        """The dotted name of an expression, "" if it has none."""
        resolved = self.resolve(node)
        return resolved.qualified if resolved else ""

    def _fitting(self, edit: Edit) -> Edit:
        """New code with quotes that may stand at its place: inside an f-string Python before 3.12 wants the other ones."""
        if '"' not in edit.text and "'" not in edit.text:
            return edit
        text = edit.text
        for node in self.place.upwards():
            for token in self.module.tokens(node) if isinstance(node, ast.JoinedStr) else ():
                if token.start < edit.start < token.end:
                    other = "'" if token.quote[0] == '"' else '"'
                    text = text.replace(token.quote[0], other)
        return replace(edit, text=text)

    def change(
        self, message: Wording, *edits: Edit, node: ast.AST | None = None, needs_prelude: bool = True
    ) -> Proposal:
        edits = tuple(map(self._fitting, edits))
        return self.context.propose(
            Kind.CHANGE, node or self.node, message, *edits, needs_prelude=needs_prelude
        )

    def remark(self, kind: Kind, message: Wording, node: ast.AST | None = None, url: str = "") -> Proposal:
        return self.context.propose(kind, node or self.node, message, url=url)
