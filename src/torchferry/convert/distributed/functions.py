"""What the functions of a program are handed, give back and yield."""

from __future__ import annotations

import ast

from torchferry.convert.distributed.program import Function, own_nodes
from torchferry.source.scopes import all_arguments


def yielding_loops(function: ast.AST) -> list[ast.For | ast.AsyncFor]:
    """The loops of a generator, in each round of which it yields something."""
    loops = [node for node in own_nodes(function) if isinstance(node, (ast.For, ast.AsyncFor))]
    return [loop for loop in loops if any(isinstance(node, ast.Yield) for node in own_nodes(loop))]


def returned(function: Function) -> list[ast.expr]:
    """The values that a function returns."""
    found = [node.value for node in own_nodes(function) if isinstance(node, ast.Return)]
    return [value for value in found if value is not None]


def argument_for(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """The argument of a call that becomes a parameter, if the call spells it out."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    if name in names and names.index(name) < len(call.args):
        return call.args[names.index(name)]
    return None


def parameter_for(call: ast.Call, function: Function, argument: ast.expr) -> str:
    """The parameter that an argument of a call becomes, "" if that is not clear."""
    for parameter in all_arguments(function.args):
        if argument_for(call, function, parameter.arg) is argument:
            return parameter.arg
    return ""
