"""A parsed Python module: its bytes, its tree, positions in both, and what its names mean."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import NamedTuple

from torchferry.source.decode import DecodedText, SourceText
from torchferry.source.edits import Edit
from torchferry.source.literals import LiteralToken, string_tokens
from torchferry.source.names import dotted_name
from torchferry.source.scopes import Binding, BindingKind, ModuleScopes, Scope, build_scopes

_ALIAS_DEPTH = 5


class ParseError(ValueError):
    """Python can't parse the text."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class TooDeepError(ParseError):
    """The text is nested more deeply than the stack allows; a larger one may do."""


class Resolved(NamedTuple):
    """The dotted name that an expression stands for, and what that rests on."""

    qualified: str
    root: ast.expr  # the name at the left, or `self.torch`
    binding: Binding | None  # None: through a star import


class PythonModule(SourceText):
    """One module. Positions are bytes of its UTF-8 text, as `ast` counts them."""

    def __init__(self, decoded: DecodedText, well_known: frozenset[str] = frozenset()) -> None:
        super().__init__(decoded)
        self.well_known = well_known  # names that stand for themselves where nothing binds them
        self.tree = parse_module(decoded.text)

    @cached_property
    def scopes(self) -> ModuleScopes:
        return build_scopes(self.tree)

    def focus(self, lines: list[int]) -> None:
        """Read only what these (sorted) lines need. Most functions of a large module are of no interest."""
        if "scopes" in self.__dict__:
            self.scopes.read(lines)
        else:
            self.scopes = build_scopes(self.tree, lines)

    def offset(self, line: int, col: int) -> int:
        """Byte position of an `ast` line and column."""
        return self.line_starts[line - 1] + col

    def start(self, node: ast.AST) -> int:
        return self.line_starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined, no-any-return]

    def end(self, node: ast.AST) -> int:
        return self.line_starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined, no-any-return]

    def segment(self, node: ast.AST) -> str:
        """The source text of a node."""
        return self.data[self.start(node) : self.end(node)].decode("utf-8")

    def tokens(self, node: ast.AST) -> list[LiteralToken]:
        """The string tokens of a string or f-string node."""
        return string_tokens(self.data, self.start(node), self.end(node))

    def attribute_span(self, node: ast.Attribute) -> tuple[int, int]:
        """Where the last name of an attribute access is written."""
        end = self.end(node)
        return end - len(node.attr.encode("utf-8")), end

    def replacement(self, node: ast.AST, text: str) -> Edit:
        """The edit that writes a text in the place of a node."""
        return Edit(self.start(node), self.end(node), text)

    def insertions_around(self, node: ast.AST, before: str, after: str) -> list[Edit]:
        """The edits that put texts before and behind a node; an empty text needs none."""
        start, end = self.start(node), self.end(node)
        return [Edit(place, place, text) for place, text in ((start, before), (end, after)) if text]

    def insertion_after(self, node: ast.AST, text: str) -> Edit:
        """The edit that puts a text where a node ends."""
        return Edit(self.end(node), self.end(node), text)

    def attribute_replacement(self, node: ast.Attribute, text: str) -> Edit:
        """The edit that writes another name in the place of the last one of an attribute access."""
        return Edit(*self.attribute_span(node), text)

    def lines_with_names(self, names: Iterable[str]) -> set[int]:
        """Numbers of the lines in which a whole name occurs."""
        if not names:
            return set()
        return self.lines_matching(_whole_names(tuple(sorted(names))))

    def resolve(
        self, node: ast.expr, scope: Scope, shadowed: frozenset[str] = frozenset()
    ) -> Resolved | None:
        """What a name or attribute chain stands for, through imports, aliases and scopes."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            owner = node.value
            if node.attr in self.well_known and isinstance(owner, ast.Name) and owner.id in ("self", "cls"):
                return Resolved(".".join((node.attr, *reversed(names))), node, None)
            names.append(node.attr)
            node = owner
        if not isinstance(node, ast.Name) or node.id in shadowed:
            return None
        found = self._resolve_name(node.id, scope, node.lineno, _ALIAS_DEPTH)
        if found is None:
            return None
        qualified, binding = found
        return Resolved(".".join((qualified, *reversed(names))), node, binding)

    def binding_of(self, name: str, scope: Scope, line: int) -> Binding | None:
        """The binding that a name most probably refers to at a line."""
        owner = scope.owner_of(name)
        return _choose(owner.bindings[name], line, same_scope=owner is scope) if owner else None

    def exported(self, name: str) -> Binding | None:
        """What other modules get under a name: what it is bound to last at the module's own level."""
        bindings = self.scopes.root.bindings.get(name)
        return _choose(bindings, bindings[-1].line, same_scope=True) if bindings else None

    def imported_as(self, qualified: str) -> str:
        """The name by which the module's own level imports a module, "" if it does not."""
        for name, bindings in self.scopes.root.bindings.items():
            if any(item.kind is BindingKind.IMPORT and item.qualified == qualified for item in bindings):
                return name
        return ""

    def _resolve_name(
        self, name: str, scope: Scope, line: int, depth: int
    ) -> tuple[str, Binding | None] | None:
        binding = self.binding_of(name, scope, line)
        if binding is None:
            if name in self.well_known:
                return name, None
            stars = [star for star in self.scopes.stars if star.partition(".")[0] in self.well_known]
            return (f"{stars[0]}.{name}", None) if stars and not hasattr(builtins, name) else None
        if binding.kind is BindingKind.IMPORT:
            return binding.qualified, binding
        if (
            binding.kind is BindingKind.ASSIGN
            and depth
            and isinstance(binding.value, (ast.Name, ast.Attribute))
        ):
            root, _, rest = dotted_name(binding.value).partition(".")
            found = self._resolve_name(root, scope, binding.line, depth - 1) if root else None
            if found is not None:
                return f"{found[0]}.{rest}" if rest else found[0], binding
        return None


def parse_module(text: str) -> ast.Module:
    """The tree of a module; raises ParseError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise ParseError(error.msg or "invalid syntax", error.lineno or 1) from None
    except RecursionError as error:
        raise TooDeepError(str(error), 1) from None
    except (ValueError, MemoryError) as error:
        raise ParseError(str(error) or type(error).__name__, 1) from None


def _choose(bindings: list[Binding], line: int, same_scope: bool) -> Binding:
    """Of several bindings the one that counts: stand-ins only if there is nothing else; else the last before use."""
    if len(bindings) == 1:
        return bindings[0]
    strong = [binding for binding in bindings if not binding.weak] or bindings
    if same_scope:
        before = [binding for binding in strong if binding.line <= line]
        return before[-1] if before else strong[-1]
    imports = [binding for binding in strong if binding.kind is BindingKind.IMPORT]
    return imports[0] if imports else strong[-1]


@lru_cache(maxsize=1024)
def _whole_names(names: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile((r"\b(?:" + "|".join(map(re.escape, names)) + r")\b").encode("utf-8"))
