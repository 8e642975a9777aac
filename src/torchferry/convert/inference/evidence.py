"""What the names around a string say: whether an expression or a variable holds a device, or a backend."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from torchferry.convert.site import Site
from torchferry.convert.target import Target
from torchferry.source.names import called_name
from torchferry.text import Text

TESTS_OF_TEXT = frozenset(
    {"startswith", "endswith", "find", "index", "count", "split", "partition", "replace"}
)
_SAME_VALUE = frozenset({"lower", "strip", "split", "partition", "get"})
CONTAINERS = (ast.List, ast.Tuple, ast.Set)


class Verdict(Enum):
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
    default: Verdict  # of a plain argument to an unknown function
    target_word: Callable[[Target], str]  # the target's own value


class Evidence:
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
            return (
                self.fits(node.attr)
                or node.attr == "type"
                or (node.attr in ("value", "name") and self.holds(node.value))
            )
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in (
                *TESTS_OF_TEXT,
                "lower",
                "strip",
                "get",
                "format",
            ):
                return self.holds(node.func.value) or any(self.key_fits(item) for item in node.args)
            return self.fits(called_name(node)) or any(self.holds(item) for item in node.args)
        if isinstance(node, ast.Subscript):
            return self.key_fits(node.slice) or self.holds(node.value)
        if isinstance(node, ast.JoinedStr):
            return any(
                isinstance(part, ast.FormattedValue) and self.holds(part.value) for part in node.values
            )
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
            return self.site.qualified(value.func) in self.vocabulary.functions or self.fits(
                called_name(value)
            )
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
    return (
        isinstance(key, ast.Constant)
        and key.value == "cuda"
        and isinstance(value, ast.Constant)
        and value.value == "nccl"
    )
