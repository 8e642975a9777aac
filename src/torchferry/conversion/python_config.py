"""Python files that are configurations: a library reads them, in the way of OpenMMLab, and no program imports them.

Such a file is executed aside, or parsed and never executed; mmengine decides which by the imports that it finds. So
nothing may be added to it, and no value of it can be an expression that needs a line of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.source.module import PythonModule
from torchferry.source.names import called_name, dotted_name, last_name
from torchferry.text import Text

_NO_EXPRESSION = Message(
    Text("Device in a configuration written in Python", "Python 配置文件中的设备"),
    why=Text(
        "A configuration holds values only, and `{name}` is known when the program runs.",
        "配置文件只能写值，而 `{name}` 要到程序运行时才知道。",
    ),
    do=Text(
        "Leave the setting out if the program chooses by itself, or set it in the program.",
        "若程序会自行选择，请去掉该设置；或在程序中设置。",
    ),
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
    # `dict(type=..., ...)` describes an object to be built.
    keywords = [keyword for call in calls if called_name(call) == "dict" for keyword in call.keywords]
    first_targets = [statement.targets[0] for statement in body if isinstance(statement, ast.Assign)]
    is_described = any(keyword.arg == "type" for keyword in keywords)
    if not is_described and not any(last_name(target) in _KNOWN for target in first_targets):
        return False
    # What is imported a configuration names, and calls none of it.
    imports = [statement for statement in body if isinstance(statement, (ast.Import, ast.ImportFrom))]
    aliases = [alias for statement in imports for alias in statement.names]
    imported = {alias.asname or alias.name.partition(".")[0] for alias in aliases}
    return not any(dotted_name(call.func).partition(".")[0] in imported for call in calls)


def _inherits(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "_base_" for target in statement.targets)
    return isinstance(statement, ast.With) and called_name(statement.items[0].context_expr) == "read_base"


def fit_for_config(context: FileContext, said: Sequence[Said]) -> list[Said]:
    """In a configuration, a change that needs a line of its own is not made."""
    name = context.target.prelude_name
    if not name or not any(_uses(name, proposal) for _, proposal in said):
        return list(said)
    if not is_python_config(context.module):
        return list(said)
    message = _NO_EXPRESSION.format(name=name)
    return [
        (rule, replace(proposal, kind=Kind.TODO, message=message, edits=(), needs_prelude=False))
        if _uses(name, proposal)
        else (rule, proposal)
        for rule, proposal in said
    ]


def _uses(name: str, proposal: Proposal) -> bool:
    return any(name in edit.text for edit in proposal.edits)
