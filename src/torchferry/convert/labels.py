"""Which variables hold class labels: those that a module gives to a classification loss, and for nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from torchferry.source.module import PythonModule
from torchferry.source.names import called_name, last_name

_LOSS_WORDS = (b"cross_entropy", b"CrossEntropyLoss", b"nll_loss", b"NLLLoss")
_FUNCTIONS = frozenset({"cross_entropy", "nll_loss"})
_MODULES = frozenset({"CrossEntropyLoss", "NLLLoss"})
# Kernels that take places or classes as int64 on every device.
_WANT_INT64 = frozenset(
    {
        "one_hot",
        "gather",
        "scatter",
        "scatter_",
        "scatter_add_",
        "index_select",
        "take_along_dim",
        "embedding",
    }
    | {"index_add_", "index_fill_", "bincount"}
)


@dataclass(frozen=True)
class Labels:
    """Names of variables, as this module uses them."""

    of_losses: frozenset[str] = frozenset()
    also_places: frozenset[str] = frozenset()  # used where int64 is a must

    def are_labels(self, name: str) -> bool:
        return name in self.of_losses and name not in self.also_places


@lru_cache(maxsize=2)  # asked for each copy of a module, and again when the result is checked
def find_labels(module: PythonModule) -> Labels:
    """What a module's losses and indexing say about its variables."""
    if not any(word in module.data for word in _LOSS_WORDS):
        return Labels()
    losses = _FUNCTIONS | set(_names_of_losses(module.tree))
    given: set[str] = set()
    places: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            if _is_loss(node, losses):
                given.update(_second(node))
            elif called_name(node) in _WANT_INT64:
                places.update(item.id for item in arguments if isinstance(item, ast.Name))
        elif isinstance(node, ast.Subscript):
            places.update(item.id for item in ast.walk(node.slice) if isinstance(item, ast.Name))
    return Labels(frozenset(given), frozenset(places))


def _names_of_losses(tree: ast.Module) -> Iterator[str]:
    """`criterion = nn.CrossEntropyLoss().cuda()`: the names under which such a loss is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(item, ast.Call) and called_name(item) in _MODULES for item in ast.walk(node.value)
        ):
            yield from filter(None, map(last_name, node.targets))


def _is_loss(call: ast.Call, losses: frozenset[str]) -> bool:
    """A call of a loss by its name, or of one made on the spot: nn.CrossEntropyLoss()(x, y)."""
    made = isinstance(call.func, ast.Call) and called_name(call.func) in _MODULES
    return made or called_name(call) in losses


def _second(call: ast.Call) -> Iterator[str]:
    values = [*call.args[1:2], *(item.value for item in call.keywords if item.arg == "target")]
    for value in values:
        if isinstance(value, ast.Name):
            yield value.id
