"""Python files that are configurations: a library reads them, in the way of OpenMMLab, and no program imports them.

Such a file is executed aside, or parsed and never executed; mmengine decides which by the imports that it finds. So
nothing may be added to it, and no value of it can be an expression that needs a line of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind
from torchferry.source.module import PythonModule
from torchferry.source.names import called_name, last_name
from torchferry.text import Text

_NO_EXPRESSION = Text(
    "a configuration holds values; {name} is known only where the program runs: leave the setting out if the "
    "program chooses by itself, or set it there",
    "配置文件只能写值，{name} 要到程序运行时才知道：若程序会自行选择，请去掉该设置，或在程序中设置",
)
_SETTINGS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Delete, ast.Import, ast.ImportFrom)
_KNOWN = frozenset({"custom_imports", "default_scope", "dist_params", "env_cfg", "optim_wrapper"})

Said = tuple[Rule, Proposal]


def is_python_config(module: PythonModule) -> bool:
    """Whether a module inherits from configurations, or holds nothing but settings as configurations have them."""
    body = module.tree.body
    if any(map(_inherits, body)):
        return True
    if not all(isinstance(statement, _SETTINGS) for statement in body):
        return False
    calls = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call)]
    described = any(called_name(call) == "dict" and _has_type(call) for call in calls)
    if not described and not any(map(_is_known_setting, body)):
        return False
    imported = set(_imported(body))
    return not any(_root(call.func) in imported for call in calls)


def _has_type(call: ast.Call) -> bool:
    """`dict(type=..., ...)` describes an object to be built."""
    return any(keyword.arg == "type" for keyword in call.keywords)


def _is_known_setting(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and last_name(statement.targets[0]) in _KNOWN


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    """Names that are imported: a configuration names them, and calls none of them."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)


def _inherits(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "_base_" for target in statement.targets)
    return isinstance(statement, ast.With) and called_name(statement.items[0].context_expr) == "read_base"


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def fit_for_config(context: FileContext, said: Sequence[Said]) -> list[Said]:
    """In a configuration, a change that needs a line of its own is not made."""
    name = context.target.prelude_name
    if not name or not any(_uses(name, proposal) for _, proposal in said):
        return list(said)
    if not is_python_config(context.module):
        return list(said)
    message = _NO_EXPRESSION.format(name=name)
    return [
        (rule, _not_made(proposal, message) if _uses(name, proposal) else proposal) for rule, proposal in said
    ]


def _uses(name: str, proposal: Proposal) -> bool:
    return any(name in edit.text for edit in proposal.edits)


def _not_made(proposal: Proposal, message: Text) -> Proposal:
    return replace(proposal, kind=Kind.TODO, message=message, edits=(), needs_prelude=False)
