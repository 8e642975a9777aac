"""The forward passes that gradients are computed of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.distributed.models import Holder
from torchferry.convert.distributed.program import ProgramFile
from torchferry.convert.distributed.training import Training, is_without_gradients


def forward_calls(training: Training, holder: Holder) -> Iterator[ast.Call]:
    """MODEL(...) in the rounds of a loop in which backward is run."""
    made = {id(origin.node) for origin in holder.made}
    rounds = _rounds_with_backward(training)
    for file in training.program.files.values():
        for call in file.calls:
            if isinstance(call.func, (ast.Name, ast.Attribute)) and _is_in(training, file, call, rounds):
                found = training.flow.origins(file, call.func)
                if any(id(origin.node) in made for origin in found):
                    yield call


def _rounds_with_backward(training: Training) -> tuple[set[int], set[int]]:
    """The ids of loops and functions: those that run backward themselves, and those that call such ones as well."""
    own: set[int] = set()
    for file in training.program.files.values():
        for call in file.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                own.add(id(_round(training, file, call)))
    reached, waiting = set(own), list(own)
    while waiting:
        for site in training.flow.sites.get(waiting.pop(), ()):
            around = id(_round(training, site.file, site.call))
            if around not in reached:
                reached.add(around)
                waiting.append(around)
    return own, reached


def _round(training: Training, file: ProgramFile, node: ast.AST) -> ast.AST:
    """The nearest loop around a node, else its function, else the module."""
    standing = file.standing(node)
    if standing is None:
        return file.module.tree
    loop = next(training.loops_around(file, standing.statement), None)
    return loop or training.function_around(file, standing.statement) or file.module.tree


def _is_in(training: Training, file: ProgramFile, call: ast.Call, rounds: tuple[set[int], set[int]]) -> bool:
    standing = file.standing(call)
    if standing is None or is_without_gradients(file, standing.statement):
        return False
    own, reached = rounds
    if id(_round(training, file, call)) in reached:
        return True
    # A function that computes the loss for the loop that runs backward.
    return any(
        id(_round(training, site.file, site.call)) in own
        for site in training.callers(file, standing.statement)
    )
