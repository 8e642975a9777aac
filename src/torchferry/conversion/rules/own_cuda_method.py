"""TF108: a class that defines cuda() or is_cuda itself also answers to the target's names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.program.blocks import indent_of, on_next_line
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message, Wording
from torchferry.source.edits import Edit
from torchferry.source.scopes import Scope
from torchferry.text import Text

_ALIAS = Message(
    Text("Second name `{new}` added to your {own}", "为您的 {own} 添加别名 `{new}`"),
    why=Text(
        "Your method keeps its name; converted calls reach it through the second name.",
        "您的方法保留原名；转换后的调用通过该别名访问它。",
    ),
)
_NEEDS_TO = Message(
    Text("Class with its own `cuda()`", "自定义 `cuda()` 的类"),
    why=Text("Converted callers use `.to(device)`.", "转换后的调用处使用 `.to(device)`。"),
    do=Text("Give the class a method `to()` as well.", "请为该类也提供 `to()` 方法。"),
)


def _finish(context: FileContext, said: list[Proposal]) -> Iterator[Proposal]:
    vendor = context.target.vendor
    for scope in context.module.scopes.scopes:
        if not scope.is_class:
            continue
        for own, new in (("cuda", vendor.tensor_method), ("is_cuda", vendor.is_attribute)):
            definition = _definition(scope, own)
            if definition is None:
                continue
            if context.target.is_portable:
                if own == "cuda" and "to" not in scope.bindings:
                    yield _at_name(context, definition, Kind.TODO, _NEEDS_TO)
            elif new and new not in scope.bindings:
                alias = f"{indent_of(context.module, definition)}{new} = {own}"
                edit = on_next_line(context.module, definition, alias)
                yield _at_name(context, definition, Kind.CHANGE, _ALIAS.format(own=own, new=new), edit)


def _definition(scope: Scope, name: str) -> ast.FunctionDef | None:
    """The class's own method; a property called cuda is a flag, not a move, and nobody calls it."""
    nodes = (binding.node for binding in scope.bindings.get(name, ()))
    methods = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return next((node for node in methods if name == "is_cuda" or not node.decorator_list), None)


def _at_name(
    context: FileContext, node: ast.FunctionDef, kind: Kind, message: Wording, *edits: Edit
) -> Proposal:
    start = context.module.start(node)
    return Proposal(kind, start, start + len(f"def {node.name}"), message, edits)


RULE = Rule(
    id="TF108",
    name="own-cuda-method",
    summary=Text(
        "Gives a class with its own `cuda()` the target's method name as well",
        "为自定义 `cuda()` 的类同时提供目标的方法名",
    ),
    triggers=("def cuda", "def is_cuda"),
    finish=_finish,
    follows=("TF103", "TF104"),
)
