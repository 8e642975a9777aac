"""Layers that a model holds but never uses: DistributedDataParallel would wait for their gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.distributed.models import Holder, is_module_class
from torchferry.convert.distributed.program import Callee, targets
from torchferry.convert.distributed.training import Training

_DEPTH = 4
_LAYERS = frozenset(
    {"Linear", "Bilinear", "Embedding", "Parameter", "LSTM", "GRU", "RNN", "LayerNorm", "GroupNorm"}
    | {"Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"}
    | {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "MultiheadAttention", "TransformerEncoderLayer"}
)
# Ways to come to a layer without its name.
_NAMELESS = frozenset({"children", "modules", "_modules", "named_children", "getattr", "__dict__"})


def has_unused_layers(training: Training, holder: Holder) -> bool:
    """Whether a layer is given to `self` in a class of the model, and asked for nowhere in the program."""
    classes: dict[int, Callee] = {}
    for origin in holder.made:
        made = training.flow.class_of(origin.file, origin.node)
        if made is not None:
            _gather(training, made, classes, _DEPTH)
    layers = {name for made in classes.values() for name in _layers(training, made)}
    asked_for = _asked_for(training) if layers else set()
    return bool(layers - asked_for) and not asked_for & _NAMELESS


def _gather(training: Training, made: Callee, classes: dict[int, Callee], depth: int) -> None:
    """A class and those that it makes layers of."""
    if id(made.node) in classes or not depth or not is_module_class(training, made):
        return
    classes[id(made.node)] = made
    for call in (node for node in ast.walk(made.node) if isinstance(node, ast.Call)):
        inner = training.flow.class_of(made.file, call)
        if inner is not None:
            _gather(training, inner, classes, depth - 1)


def _layers(training: Training, made: Callee) -> Iterator[str]:
    """The attributes that hold layers with parameters."""
    for node in ast.walk(made.node):
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Call) or not targets(node):
            continue
        inner = training.flow.class_of(made.file, value)
        is_layer = made.file.qualified(value.func).removeprefix("torch.nn.") in _LAYERS
        if is_layer or (inner is not None and is_module_class(training, inner)):
            yield from (target.attr for target in targets(node) if isinstance(target, ast.Attribute))


def _asked_for(training: Training) -> set[str]:
    """The names of all attributes that the program reads."""
    found: set[str] = set()
    for file in training.program.files.values():
        for node in ast.walk(file.module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Name):
                found.add(node.id)
    return found
