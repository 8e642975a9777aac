"""Which variables hold class labels: those that a module gives to a classification loss, and for nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property, lru_cache

from torchferry.source.module import PythonModule
from torchferry.source.names import called_name, last_name
from torchferry.source.walk import nodes_on_lines

LOSS_WORDS = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss")
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


class Labels:
    """Names of variables, as a module uses them."""

    def __init__(self, module: PythonModule) -> None:
        self._module = module
        self.of_losses = frozenset(_given_to_losses(module))

    @cached_property
    def _places(self) -> frozenset[str]:
        places: set[str] = set()
        for node in ast.walk(self._module.tree):
            if isinstance(node, ast.Call) and called_name(node) in _WANT_INT64:
                arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
                places.update(item.id for item in arguments if isinstance(item, ast.Name))
            elif isinstance(node, ast.Subscript):
                places.update(item.id for item in ast.walk(node.slice) if isinstance(item, ast.Name))
        return frozenset(places)

    def are_labels(self, name: str) -> bool:
        return name in self.of_losses and name not in self._places


@lru_cache(maxsize=2)  # asked for each copy of a module, and again when the result is checked
def find_labels(module: PythonModule) -> Labels:
    """What a module's losses and indexing say about its variables."""
    return Labels(module)


def _given_to_losses(module: PythonModule) -> Iterator[str]:
    losses = _FUNCTIONS | set(_names_of_losses(module))
    words = [word.encode() for word in (*losses, *_MODULES)]
    for node in nodes_on_lines(module, sorted(module.lines_with(words))):
        # A loss is called by its name, or made on the spot: nn.CrossEntropyLoss()(x, y).
        if isinstance(node, ast.Call) and (called_name(node) in losses or called_name(node.func) in _MODULES):
            values = [*node.args[1:2], *(item.value for item in node.keywords if item.arg == "target")]
            yield from (value.id for value in values if isinstance(value, ast.Name))


def _names_of_losses(module: PythonModule) -> Iterator[str]:
    """`criterion = nn.CrossEntropyLoss().cuda()`: the names under which such a loss is called."""
    for node in nodes_on_lines(module, sorted(module.lines_with([word.encode() for word in _MODULES]))):
        if isinstance(node, ast.Assign) and any(
            isinstance(item, ast.Call) and called_name(item) in _MODULES for item in ast.walk(node.value)
        ):
            yield from filter(None, map(last_name, node.targets))
