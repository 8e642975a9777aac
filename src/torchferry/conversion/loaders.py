"""Data loaders: which calls make one, and whether it is for training or for evaluation."""

from __future__ import annotations

import ast
import re
from enum import Enum

from torchferry.conversion.program.slots import text_of
from torchferry.conversion.site import Site

DATA_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
_TRAINING = re.compile(r"(?i)(?:^|_)tra?i?n|train")
_EVALUATION = re.compile(
    r"(?i)(?:^|_)(?:val|valid|validation|test|eval|evaluation|dev|infer|predict)(?:_|\d|$)"
)
# The order of DataLoader's parameters, as far as anyone writes them without their names.
PARAMETERS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")


class LoaderUse(Enum):
    """What a loader is for."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    UNKNOWN = "unknown"


def makes_loader(site: Site[ast.Call]) -> bool:
    """Whether a call makes one of PyTorch's data loaders."""
    return site.qualified(site.node.func) in DATA_LOADERS


def argument(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a loader's argument, however it is passed."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    position = PARAMETERS.index(name) if name in PARAMETERS else len(call.args)
    return call.args[position] if position < len(call.args) else None


def use_of(site: Site[ast.Call]) -> LoaderUse:
    """By the names around the call, else by whether it shuffles: nobody shuffles to evaluate."""
    # {x: DataLoader(sets[x], shuffle=True) for x in ["train", "val"]}
    loops = (loop for node in site.place.upwards() for loop in getattr(node, "generators", ()))
    if any(_EVALUATION.search(text_of(item)) for loop in loops for item in ast.walk(loop.iter)):
        return LoaderUse.UNKNOWN
    for name in _names_around(site):
        if _EVALUATION.search(name):
            return LoaderUse.EVALUATION
        if _TRAINING.search(name):
            return LoaderUse.TRAINING
    shuffle = argument(site.node, "shuffle")
    if isinstance(shuffle, ast.Constant):
        return LoaderUse.TRAINING if shuffle.value else LoaderUse.UNKNOWN
    return LoaderUse.TRAINING if shuffle is not None else LoaderUse.UNKNOWN


def _names_around(site: Site[ast.Call]) -> list[str]:
    """The variable that gets the loader, then the dataset, then the function around."""
    names: list[str] = []
    statement = site.place.statement
    if isinstance(statement, ast.Assign) and statement.value is site.node:
        names += [ast.unparse(target) for target in statement.targets]
    dataset = argument(site.node, "dataset")
    if isinstance(dataset, (ast.Name, ast.Attribute)):
        names.append(ast.unparse(dataset))
    if isinstance(site.scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        names.append(site.scope.node.name)
    return names
