"""Functions and assignments as they are written: parameters, the arguments of calls, what is given back or bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.source.walk import child_nodes

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ASSIGNMENTS = (ast.Assign, ast.AnnAssign)


def positional(function: FunctionNode) -> list[str]:
    """The names of the parameters that have a position."""
    return [item.arg for item in (*function.args.posonlyargs, *function.args.args)]


def with_defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    """The parameters that have a default, each with it; and those that must be named, with theirs or None."""
    parameters = [*arguments.posonlyargs, *arguments.args]
    return [
        *zip(parameters[len(parameters) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]


def argument_for(call: ast.Call, function: FunctionNode, name: str, given: int) -> ast.expr | None:
    """The argument of a call that becomes a parameter, if the call spells it out; `given` come before its first."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    names = positional(function)
    place = names.index(name) - given if name in names else -1
    return call.args[place] if 0 <= place < len(call.args) else None


def returned(function: FunctionNode) -> list[ast.expr]:
    """The values that a function returns."""
    found = [node.value for node in own_nodes(function) if isinstance(node, ast.Return)]
    return [value for value in found if value is not None]


def yielding_loops(function: ast.AST) -> list[ast.For | ast.AsyncFor]:
    """The loops of a generator, in each round of which it yields something."""
    loops = [node for node in own_nodes(function) if isinstance(node, (ast.For, ast.AsyncFor))]
    return [loop for loop in loops if any(isinstance(node, ast.Yield) for node in own_nodes(loop))]


def is_self(node: ast.AST) -> bool:
    """Whether an expression is the object, or the class, whose method it stands in."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def own_method(node: ast.ClassDef, name: str) -> FunctionNode | None:
    """A method that a class itself defines."""
    return next((item for item in node.body if isinstance(item, FUNCTIONS) and item.name == name), None)


def assigned_to(node: ast.AST) -> list[ast.expr]:
    """What an assignment gives its value, with a type or without; nothing for any other statement."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) and node.value is not None else []


def targets(node: ast.AST) -> list[ast.Name | ast.Attribute]:
    """The names and attributes that an assignment binds."""
    nodes = [child for target in assigned_to(node) for child in ast.walk(target)]
    names = [child for child in nodes if isinstance(child, (ast.Name, ast.Attribute))]
    return [child for child in names if isinstance(child.ctx, ast.Store)]


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those of functions and classes that are defined in it."""
    waiting = child_nodes(node)
    while waiting:
        child = waiting.pop()
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting.extend(child_nodes(child))


def own_calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls below a node, without those of functions and classes that are defined in it."""
    return (child for child in own_nodes(node) if isinstance(child, ast.Call))
