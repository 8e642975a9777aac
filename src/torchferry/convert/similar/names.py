"""How a dotted name is written in a place, by the names that the module imports."""

from __future__ import annotations

import ast

from torchferry.convert.site import Site
from torchferry.source.scopes import BindingKind


class Spelling:
    """Writes dotted names for one place, and notes the modules that would have to be imported for it."""

    def __init__(self, site: Site[ast.Call]) -> None:
        self._site = site
        self.missing: set[str] = set()

    def spell(self, dotted: str) -> str:
        """The name by way of the module's name in the call, else of the longest part of it that is imported."""
        root = dotted.partition(".")[0]
        if root == self._site.target.prelude_module:
            return dotted
        own = self._as_called()
        if own is not None and dotted.startswith(own[1] + "."):
            return own[0] + dotted[len(own[1]) :]
        known = [
            (qualified, name)
            for name, qualified in self._imported()
            if qualified.partition(".")[0] == root and (dotted + ".").startswith(qualified + ".")
        ]
        if not known:
            self.missing.add(root)
            return dotted
        qualified, name = max(known, key=lambda item: len(item[0]))
        return name + dotted[len(qualified) :]

    def _as_called(self) -> tuple[str, str] | None:
        """The name by which the user calls the module of the function, and what it stands for."""
        resolved = self._site.resolve(self._site.node.func)
        node: ast.expr = self._site.node.func
        if resolved is None or resolved.root is node:
            return None
        qualified = resolved.qualified
        while isinstance(node, ast.Attribute) and node is not resolved.root:
            qualified = qualified[: -len(node.attr) - 1]
            node = node.value
        return (self._site.module.segment(node), qualified) if isinstance(node, ast.Name) else None

    def _imported(self) -> list[tuple[str, str]]:
        """The module's own imports that mean the same in this place."""
        found = []
        for name, bindings in self._site.module.scopes.root.bindings.items():
            if len({binding.qualified for binding in bindings}) != 1:
                continue
            if bindings[0].kind is not BindingKind.IMPORT or bindings[0].weak:
                continue
            probe = ast.Name(id=name, ctx=ast.Load(), lineno=self._site.node.lineno, col_offset=0)
            resolved = self._site.module.resolve(probe, self._site.scope, self._site.place.shadowed)
            if resolved is not None and resolved.binding in bindings:
                found.append((name, bindings[0].qualified))
        return found
