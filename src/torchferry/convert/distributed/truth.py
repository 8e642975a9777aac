"""What a test in a function comes to when the function is called at a certain place with constants."""

from __future__ import annotations

import ast

from torchferry.convert.distributed.flow import Flow, Origin, Site
from torchferry.convert.distributed.functions import argument_for
from torchferry.convert.distributed.program import FUNCTIONS, Function, ProgramFile
from torchferry.source.scopes import BindingKind

_UNKNOWN = object()
_DEPTH = 6


def truth(file: ProgramFile, node: ast.expr, function: Function, site: Site) -> bool | None:
    """Whether an expression of a function is true for a call of it; None if that can't be told."""
    value = _value(file, node, function, site, _DEPTH)
    return None if value is _UNKNOWN else bool(value)


def is_reached(flow: Flow, made: Origin, site: Site) -> bool:
    """Whether a call of a function may come to an expression in it, by the tests on the way."""
    callee = flow.callee(site.file, site.call)
    standing = made.file.standing(made.node)
    if callee is None or not isinstance(callee.node, FUNCTIONS) or standing is None:
        return True
    statement: ast.stmt = standing.statement
    while statement is not callee.node:
        block = made.file.blocks.get(id(statement))
        if block is None:
            return True
        for earlier in block.statements[: block.statements.index(statement)]:
            if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], (ast.Return, ast.Raise)):
                if truth(made.file, earlier.test, callee.node, site):
                    return False
        if isinstance(block.owner, ast.If):
            found = truth(made.file, block.owner.test, callee.node, site)
            if found is not None and found is not (block.statements is block.owner.body):
                return False
        if not isinstance(block.owner, ast.stmt):
            return True
        statement = block.owner
    return True


def _value(file: ProgramFile, node: ast.expr, function: Function, site: Site, depth: int) -> object:
    """The value of an expression, or _UNKNOWN."""
    if isinstance(node, ast.Constant):
        return node.value
    if not depth:
        return _UNKNOWN
    if isinstance(node, ast.Name):
        return _of_name(file, node, function, site, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found = _value(file, node.operand, function, site, depth - 1)
        return found if found is _UNKNOWN else not found
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left = _value(file, node.left, function, site, depth - 1)
        return _compared(file, left, node, function, site, depth)
    if isinstance(node, ast.IfExp):
        test = _value(file, node.test, function, site, depth - 1)
        branch = node.body if test else node.orelse
        return test if test is _UNKNOWN else _value(file, branch, function, site, depth - 1)
    return _UNKNOWN


def _compared(
    file: ProgramFile, left: object, node: ast.Compare, function: Function, site: Site, depth: int
) -> object:
    operator, other = node.ops[0], node.comparators[0]
    if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(other, (ast.List, ast.Tuple, ast.Set)):
        values = [_value(file, item, function, site, depth - 1) for item in other.elts]
        if left is _UNKNOWN or _UNKNOWN in values:
            return _UNKNOWN
        return (left in values) is isinstance(operator, ast.In)
    right = _value(file, other, function, site, depth - 1)
    if (
        left is _UNKNOWN
        or right is _UNKNOWN
        or not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot))
    ):
        return _UNKNOWN
    return (left == right) is isinstance(operator, (ast.Eq, ast.Is))


def _of_name(file: ProgramFile, node: ast.Name, function: Function, site: Site, depth: int) -> object:
    """A parameter by what the call hands over, else its default; a variable by the one value it is given."""
    bindings = file.scopes[id(function)].bindings.get(node.id, [])
    if len(bindings) != 1:
        return _UNKNOWN
    binding = bindings[0]
    if binding.kind is BindingKind.ASSIGN and binding.value is not None:
        return _value(file, binding.value, function, site, depth - 1)
    if binding.kind is not BindingKind.PARAMETER:
        return _UNKNOWN
    given = argument_for(site.call, function, node.id)
    if given is None and not _is_hidden(site.call):
        given = _default(function, node.id)
    return given.value if isinstance(given, ast.Constant) else _UNKNOWN


def _is_hidden(call: ast.Call) -> bool:
    return any(isinstance(item, ast.Starred) for item in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )


def _default(function: Function, name: str) -> ast.expr | None:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    pairs = [
        *zip(positional, defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((value for parameter, value in pairs if parameter.arg == name), None)
