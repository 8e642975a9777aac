"""The way from a value up through the expressions that only pass it on: lists, conditions, templates, str()."""

from __future__ import annotations

import ast
import re

from torchferry.convert.inference.evidence import CONTAINERS, Evidence, Verdict, Vocabulary
from torchferry.convert.program.slots import Slot, key_of, target_slots, text_of
from torchferry.convert.site import Site
from torchferry.source.names import called_name

_TRANSPARENT_CALLS = frozenset(
    {"str", "list", "tuple", "set", "frozenset", "sorted", "cycle", "repeat", "zip", "iter", "product"}
)
_COLUMNS = frozenset({"zip", "product"})
_ROWS = frozenset({"param"})  # pytest.param("cuda", 1, marks=...), parameterized.param("cuda", 1)
_TRANSPARENT = (
    ast.IfExp,
    ast.BoolOp,
    ast.Starred,
    ast.NamedExpr,
    ast.Await,
    ast.Lambda,
    ast.FormattedValue,
)
# A text that begins with a value, and goes on with an index if at all.
_TEMPLATE = re.compile(r"(?:%s|\{[^{}]*\})(?::|\Z)")


class Climb:
    """What is known of one value, a string or an expression that has it, on its way up."""

    def __init__(self, site: Site[ast.expr], vocabulary: Vocabulary, indexes: tuple[int, ...] = ()) -> None:
        self.site = site
        self.vocabulary = vocabulary
        self.evidence = Evidence(site, vocabulary)
        self.target_word = vocabulary.target_word(site.target)
        # Which element of a tuple or list the value is, from the innermost outwards.
        self.indexes = list(indexes)
        self.slots: tuple[Slot, ...] = ()  # what the value is put into on its way up

    def note(self, parent: ast.AST, child: ast.AST) -> None:
        """Remember what a value passes on its way: its index in a tuple, the name that `:=` gives it."""
        if isinstance(parent, (ast.Tuple, ast.List)):
            self.indexes.append(self.evidence.position_in(parent.elts, child) or 0)
        elif isinstance(parent, ast.Call) and called_name(parent) in _ROWS:
            self.indexes.append(self.evidence.position_in(parent.args, child) or 0)
        elif isinstance(parent, ast.Call) and called_name(parent) in _COLUMNS:
            # Which of the lists the value is in says where it stands in each row.
            self.indexes[-1:] = [self.evidence.position_in(parent.args, child) or 0, 0]
        elif isinstance(parent, ast.NamedExpr):
            self.slots += target_slots(self.site, parent.target)

    def lists_target(self, parent: ast.AST) -> bool:
        """Whether the target's own value stands in the same list: this code knows the target already."""
        return isinstance(parent, (ast.Dict, *CONTAINERS)) and self.target_word in self.evidence.words_in(
            parent
        )

    def is_transparent(self, parent: ast.AST, child: ast.AST) -> bool:
        if isinstance(parent, ast.IfExp):
            return child is not parent.test
        if isinstance(parent, (ast.JoinedStr, ast.BinOp)):
            return self._is_beginning(parent, child)
        if isinstance(parent, (*_TRANSPARENT, *CONTAINERS)):
            return True
        if isinstance(parent, ast.Attribute):  # 'cuda:{}'.format
            return parent.attr in ("format", "lower", "strip", "value")
        if isinstance(parent, ast.Subscript):  # devices[0]
            return child is parent.value and self._is_element(parent.slice)
        if isinstance(parent, ast.Call):
            if child is parent.func:
                return isinstance(child, ast.Attribute)
            if isinstance(parent.func, ast.Name) and parent.func.id in _TRANSPARENT_CALLS:
                return True
            if called_name(parent) in (*_ROWS, "product"):  # itertools.product
                return child in parent.args
            return self._is_default(parent, child) or (
                called_name(parent) == "format" and self._is_beginning(parent, child)
            )
        return False

    def _is_beginning(self, parent: ast.JoinedStr | ast.BinOp | ast.Call, child: ast.AST) -> bool:
        """Whether a text begins with the value that was put into it: f"{where}:0", but not f"on {where}"."""
        if isinstance(parent, ast.BinOp) and not isinstance(parent.op, (ast.Add, ast.Mod, ast.Mult)):
            return False
        if not isinstance(parent, ast.Call) and isinstance(self.site.node, (ast.Constant, ast.JoinedStr)):
            return True
        if isinstance(parent, ast.JoinedStr):
            rest = text_of(parent.values[1]) if len(parent.values) > 1 else ""
            return child is parent.values[0] and rest[:1] in ("", ":")
        if isinstance(parent, ast.Call):
            template = parent.func.value if isinstance(parent.func, ast.Attribute) else None
            return child is parent.args[0] and bool(_TEMPLATE.match(text_of(template)))
        if child is parent.left:
            return text_of(parent.right)[:1] in ("", ":")
        return bool(_TEMPLATE.match(text_of(parent.left)))

    def _is_element(self, index: ast.expr) -> bool:
        """Whether a subscript takes the value out of what it is an element of."""
        if text_of(index):
            return False
        if self.indexes and isinstance(index, ast.Constant):
            return self.indexes.pop() == index.value
        return True

    def _is_default(self, call: ast.Call, child: ast.AST) -> bool:
        """`os.environ.get("WHERE", "cuda")`: as good as the call itself, if the key does not tell."""
        key = key_of(call)
        return (
            key is not None
            and child is call.args[-1]
            and len(call.args) > 1
            and (
                text_of(child) != key[1]
                and not self.evidence.fits(key[1])
                and self.vocabulary.default is Verdict.UNCLEAR
            )
        )

    def has_sibling(self, parent: ast.AST, child: ast.AST) -> bool:
        others: list[ast.expr] = []
        if isinstance(parent, ast.IfExp):
            others = [parent.body, parent.orelse]
        elif isinstance(parent, CONTAINERS):
            words = self.evidence.words_in(parent)
            return (
                not self.vocabulary.siblings.isdisjoint(words)
                or self._follows_option(parent.elts, child)
                or self._has_sibling_in_column(parent, parent.elts, child)
            )
        elif isinstance(parent, ast.BoolOp):
            others = parent.values
        return any(other is not child and self.evidence.mentions_sibling(other) for other in others)

    def _has_sibling_in_column(self, table: ast.expr, rows: list[ast.expr], child: ast.AST) -> bool:
        """[("cuda", 1), ("cpu", 2)]"""
        if not _elements(child):
            return False
        index = self.indexes[-1] if self.indexes else 0
        answers, key = self.site.context.answers, ("column", self.vocabulary.noun, id(table), index)
        if key not in answers:
            column = (item for row in rows for item in _elements(row)[index : index + 1])
            answers[key] = any(text_of(item) in self.vocabulary.siblings for item in column)
        return answers[key]

    def _follows_option(self, elements: list[ast.expr], child: ast.AST) -> bool:
        """["--device", "cuda"]"""
        position = self.evidence.position_in(elements, child)
        before = elements[position - 1] if position else None
        return (
            isinstance(before, ast.Constant)
            and str(before.value).startswith("-")
            and self.evidence.key_fits(before)
        )


def _elements(row: ast.AST) -> list[ast.expr]:
    """The elements of a row of a table."""
    if isinstance(row, ast.Call) and called_name(row) in _ROWS:
        return row.args
    return row.elts if isinstance(row, (ast.Tuple, ast.List)) else []
