"""What the names around a string say, and the way up from it through expressions that only pass it on."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from torchferry.conversion.program.slots import Slot, key_of, target_slots, text_of
from torchferry.conversion.site import Site
from torchferry.conversion.target import Target
from torchferry.source.names import called_name
from torchferry.text import Text

TESTS_OF_TEXT = frozenset(
    {"startswith", "endswith", "find", "index", "count", "split", "partition", "replace"}
)
_METHODS_OF_TEXT = TESTS_OF_TEXT | {"lower", "strip", "get", "format"}
_SAME_VALUE = frozenset({"lower", "strip", "split", "partition", "get"})
CONTAINERS = (ast.List, ast.Tuple, ast.Set)


class RoleVerdict(Enum):
    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Vocabulary:
    """How one sort of value is recognised: names of variables that hold it, values that stand beside it."""

    noun: Text
    name: re.Pattern[str]  # names of variables, parameters, keys and options that hold such a value
    own: re.Pattern[str]  # CUDA's own values of this sort
    siblings: frozenset[str]  # other values of the same sort
    functions: dict[str, tuple[int, ...]]  # dotted function -> positions of arguments of this sort
    methods: dict[str, tuple[int, ...]]  # method name -> positions
    default: RoleVerdict  # of a plain argument to an unknown function
    target_word: Callable[[Target], str]  # the target's own value


class NameEvidence:
    """Answers questions about the code around one string, for one sort of value."""

    def __init__(self, site: Site[ast.expr], vocabulary: Vocabulary) -> None:
        self.site = site
        self.vocabulary = vocabulary

    def words_in(self, node: ast.Dict | ast.List | ast.Tuple | ast.Set) -> frozenset[str]:
        """The strings of a list or the keys of a dictionary, as far as they are written there."""
        known = self.site.context.words
        if id(node) not in known:
            elements = node.keys if isinstance(node, ast.Dict) else node.elts
            known[id(node)] = frozenset(word for item in elements if item for word in _strings(item))
        return known[id(node)]

    def position_in(self, elements: Sequence[ast.expr | None], child: ast.AST) -> int | None:
        """Where a node stands in a list of nodes; long lists are indexed once."""
        known = self.site.context.positions
        if id(elements) not in known:
            known[id(elements)] = {id(element): index for index, element in enumerate(elements)}
        return known[id(elements)].get(id(child))

    def mentions_sibling(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return node.value in self.vocabulary.siblings
        if isinstance(node, ast.IfExp):
            return self.mentions_sibling(node.body) or self.mentions_sibling(node.orelse)
        return False

    def is_known_argument(self, call: ast.Call, name: str, position: int) -> bool:
        qualified = self.site.qualified(call.func)
        positions = self.vocabulary.functions.get(qualified)
        if positions is None and isinstance(call.func, ast.Attribute):
            positions = self.vocabulary.methods.get(name)
        return positions is not None and position in positions

    def fits(self, name: str) -> bool:
        return bool(self.vocabulary.name.search(name))

    def holds(self, node: ast.expr) -> bool:
        """Whether an expression holds a value of this sort, by its names."""
        if isinstance(node, ast.Name):
            return self.fits(node.id) or self._is_bound_to_one(node)
        if isinstance(node, ast.Attribute):
            is_other_form = node.attr in ("value", "name") and self.holds(node.value)
            return is_other_form or self.fits(node.attr) or node.attr == "type"
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS_OF_TEXT:
                return self.holds(node.func.value) or any(self.key_fits(item) for item in node.args)
            return self.fits(called_name(node)) or any(self.holds(item) for item in node.args)
        if isinstance(node, ast.Subscript):
            return self.key_fits(node.slice) or self.holds(node.value)
        if isinstance(node, ast.JoinedStr):
            values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            return any(map(self.holds, values))
        if isinstance(node, (*CONTAINERS, ast.BoolOp)):
            items = node.values if isinstance(node, ast.BoolOp) else node.elts
            return any(self.mentions_sibling(item) or self.holds(item) for item in items)
        return isinstance(node, ast.NamedExpr) and (self.holds(node.target) or self.holds(node.value))

    def holds_surely(self, node: ast.expr) -> bool:
        """The same, for what another string is judged by: the value itself, not something made of it."""
        if isinstance(node, ast.Attribute):
            return self.holds_surely(node.value) if node.attr == "type" else self.fits(node.attr)
        if isinstance(node, ast.Call):
            if self.site.qualified(node.func) in self.vocabulary.functions or self.fits(called_name(node)):
                return True
            if isinstance(node.func, ast.Attribute):
                return node.func.attr in _SAME_VALUE and self.holds_surely(node.func.value)
            return called_name(node) == "str" and any(map(self.holds_surely, node.args))
        if isinstance(node, ast.Subscript):
            return self.key_fits(node.slice) or self.holds_surely(node.value)
        return isinstance(node, ast.Name) and self.holds(node)

    def _is_bound_to_one(self, name: ast.Name) -> bool:
        """`d = torch.device(...)`, `d = x.device`, `d = x.device.type`: the name says nothing, its value does."""
        binding = self.site.module.binding_of(name.id, self.site.scope, name.lineno)
        value = binding.value if binding else None
        if isinstance(value, ast.Call):
            is_function = self.site.qualified(value.func) in self.vocabulary.functions
            return is_function or self.fits(called_name(value))
        if isinstance(value, ast.Attribute) and value.attr == "type":
            value = value.value  # x.device.type
        return isinstance(value, ast.Attribute) and self.fits(value.attr)

    def key_fits(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) and isinstance(node.value, str) and self.fits(node.value)


def _strings(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _strings(node.body)
        yield from _strings(node.orelse)


def is_backend_of_device(key: ast.AST, value: ast.AST) -> bool:
    """{"cuda": "nccl", "cpu": "gloo"}: which backend a device type uses."""
    return text_of(key) == "cuda" and text_of(value) == "nccl"


# The way from a value up through the expressions that only pass it on: lists, conditions, templates,
# str().

_TRANSPARENT_CALLS = frozenset(
    {"str", "list", "tuple", "set", "frozenset", "sorted", "cycle", "repeat", "zip", "iter", "product"}
)
_COLUMNS = frozenset({"zip", "product"})
_ROWS = frozenset({"param"})  # pytest.param("cuda", 1, marks=...), parameterized.param("cuda", 1)
_TRANSPARENT = (ast.BoolOp, ast.Starred, ast.NamedExpr, ast.Await, ast.Lambda, ast.FormattedValue)
# A text that begins with a value, and goes on with an index if at all.
_TEMPLATE = re.compile(r"(?:%s|\{[^{}]*\})(?::|\Z)")


class Climb:
    """What is known of one value, a string or an expression that has it, on its way up."""

    def __init__(self, site: Site[ast.expr], vocabulary: Vocabulary, indexes: tuple[int, ...] = ()) -> None:
        self.site = site
        self.vocabulary = vocabulary
        self.evidence = NameEvidence(site, vocabulary)
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
        if not isinstance(parent, (ast.Dict, *CONTAINERS)):
            return False
        return self.target_word in self.evidence.words_in(parent)

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
            is_filled_in = called_name(parent) == "format" and self._is_beginning(parent, child)
            return is_filled_in or self._is_default(parent, child)
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
        if key is None or len(call.args) < 2 or child is not call.args[-1]:
            return False
        tells = text_of(child) == key[1] or self.evidence.fits(key[1])
        return not tells and self.vocabulary.default is RoleVerdict.UNCLEAR

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
        before = text_of(elements[position - 1]) if position else ""
        return before.startswith("-") and self.evidence.fits(before)


def _elements(row: ast.AST) -> list[ast.expr]:
    if isinstance(row, ast.Call) and called_name(row) in _ROWS:
        return row.args
    return row.elts if isinstance(row, (ast.Tuple, ast.List)) else []
