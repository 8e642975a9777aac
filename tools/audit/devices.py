"""Classifies strings that look like a device ('cuda', 'cuda:0', f'cuda:{i}') or a backend ('nccl')."""

from __future__ import annotations

import ast
import re

from .model import HUMAN, KEEP, MUST, Call
from .names import Names, called
from .roles import Role, names_in
from .tree import FUNCTIONS, SCOPES, Tree

DEVICE_NAME = re.compile(r"device|^devs?$|^_?dev_|_devs?$|map_location", re.IGNORECASE)
BACKEND_NAME = re.compile(r"backend|process_group|comm", re.IGNORECASE)
OTHERS = {"npu", "mlu", "sdaa", "xpu", "hpu", "musa", "gcu", "dipu", "hccl", "cncl", "tccl", "ccl", "xccl"}
STRING_METHODS = {
    "startswith",
    "endswith",
    "find",
    "split",
    "replace",
    "strip",
    "lstrip",
    "rstrip",
    "count",
    "index",
}
STRING_METHODS |= {"partition", "removeprefix", "rsplit", "rfind"}
ATTRIBUTE_CALLS = {"getattr", "hasattr", "setattr", "delattr", "attrgetter", "methodcaller"}
OPTION_KEYWORDS = {"default", "choices", "const", "type"}
PATHS = re.compile(r"(^|\.)(join|Path|PurePath|glob|listdir|exists|open|joinpath|append_root)$")


def judge_device(tree: Tree, names: Names, node: ast.expr, value: str, role: Role) -> Call:
    """The class of a device-like string."""
    if OTHERS & set(role.siblings):
        return Call(HUMAN, "device beside other accelerators", "string")
    found = _judge(tree, names, node, role, DEVICE_NAME)
    indexed = re.search(r":.*(\d|\{|%)", value) is not None
    if indexed and found.cls == HUMAN and role.kind not in ("key", "contains"):
        return Call(MUST, "device with an index")
    return found


def judge_backend(tree: Tree, names: Names, node: ast.expr, role: Role) -> Call:
    """The class of the string 'nccl'."""
    if OTHERS & set(role.siblings):
        return Call(HUMAN, "backend beside those of other accelerators", "string")
    return _judge(tree, names, node, role, BACKEND_NAME)


def _judge(tree: Tree, names: Names, node: ast.expr, role: Role, wanted: re.Pattern[str]) -> Call:
    kind = role.kind
    if kind == "file":
        return Call(KEEP, "file name")
    if kind == "key":
        if "Literal" in role.names:
            return Call(HUMAN, "type annotation", "string")
        return Call(HUMAN, "key of a table", "string")
    if role.call is not None:
        return _argument(tree, names, role, wanted)
    if kind in ("compare", "contains"):
        certain = any(wanted.search(name) for name in role.names) or (
            kind == "compare" and "type" in role.names
        )
        return (
            Call(MUST, "compared with a device or backend")
            if certain
            else _unknown("compared with an unknown value")
        )
    if any(wanted.search(name) for name in role.names):
        return Call(MUST, f"{kind} of a device or backend name")
    if kind == "assign" and _flows(tree, names, node, role, wanted):
        return Call(MUST, "value used as a device or backend")
    return _unknown(f"{kind}, meaning unknown")


def _unknown(reason: str) -> Call:
    return Call(HUMAN, reason, "string")


def _argument(tree: Tree, names: Names, role: Role, wanted: re.Pattern[str]) -> Call:
    call = role.call
    assert call is not None
    name = called(call.func)
    path = names.resolve(call.func) or ""
    if role.kind == "keyword":
        return _keyword(call, role, wanted)
    if name in ATTRIBUTE_CALLS and role.index >= 2:
        return _by_names([str(getattr(call.args[1], "value", ""))], wanted, "fallback of a look-up")
    if name in ATTRIBUTE_CALLS:
        if names.resolve(call.args[0]) == "torch":
            return _unknown("attribute of torch by name")
        return Call(KEEP, "attribute name as text")
    if PATHS.search(name):
        return Call(KEEP, "file name")
    if name in ("add_argument", "option", "argument", "add_option"):
        return Call(KEEP, "name of an option")
    if path.startswith("torch.") and not path.startswith("torch.testing"):
        return Call(MUST, "argument of torch")
    if name == "to":
        return Call(MUST, "argument of .to()")
    if name in STRING_METHODS or name in ("append", "add", "insert", "extend", "remove"):
        receiver = names_in(call.func.value) if isinstance(call.func, ast.Attribute) else []
        return _by_names(receiver, wanted, f"argument of .{name}()")
    if name in ("get", "pop", "setdefault") or "environ" in path or name == "getenv":
        if role.index == 0:
            return _unknown("key of a table")
        return _by_names([str(getattr(call.args[0], "value", ""))], wanted, "fallback of a look-up")
    if name == "parametrize" and role.index == 1:
        return _by_names([str(getattr(call.args[0], "value", ""))], wanted, "test parameter")
    parameter = _parameter(names, name, role.index, isinstance(call.func, ast.Attribute))
    return _by_names([name, parameter], wanted, "argument of a function")


def _by_names(found: list[str], wanted: re.Pattern[str], reason: str) -> Call:
    if any(wanted.search(name) for name in found):
        return Call(MUST, reason)
    return _unknown(f"{reason}, meaning unknown")


def _keyword(call: ast.Call, role: Role, wanted: re.Pattern[str]) -> Call:
    name = role.names[0]
    if wanted.search(name):
        return Call(MUST, "keyword for a device or backend")
    if name in OPTION_KEYWORDS:
        flags = [str(arg.value) for arg in call.args if isinstance(arg, ast.Constant)]
        flags += [
            str(item.value.value)
            for item in call.keywords
            if item.arg == "dest" and isinstance(item.value, ast.Constant)
        ]
        return _by_names(flags, wanted, "option's value")
    if name in ("help", "reason", "msg", "metavar", "description"):
        return Call(KEEP, "message")
    return _unknown("keyword, meaning unknown")


def _parameter(names: Names, function: str, index: int, method: bool) -> str:
    """The parameter that a positional argument of a function of this file goes to."""
    made = names.classes.get(function)
    candidates = list(names.functions.get(function, ()))
    if made is not None:
        candidates = [item for item in made.body if isinstance(item, FUNCTIONS) and item.name == "__init__"]
        method = True
    if len(candidates) != 1 or index < 0:
        return ""
    arguments = candidates[0].args
    positional = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
    if positional[:1] in (["self"], ["cls"]) and method:
        positional = positional[1:]
    return positional[index] if index < len(positional) else ""


def _flows(tree: Tree, names: Names, node: ast.expr, role: Role, wanted: re.Pattern[str]) -> bool:
    """Whether a variable given this string is later used as a device or backend in the same scope."""
    scope = tree.enclosing(node, SCOPES)
    if scope is None:
        return False
    for use in ast.walk(scope):
        if not isinstance(use, ast.Name) or use.id not in role.names or not isinstance(use.ctx, ast.Load):
            continue
        parent = tree.parent(use)
        if isinstance(parent, ast.keyword) and parent.arg and wanted.search(parent.arg):
            return True
        if isinstance(parent, ast.Call) and use in parent.args:
            path = names.resolve(parent.func) or ""
            if called(parent.func) == "to" or path in (
                "torch.device",
                "torch.autocast",
                "torch.cuda.set_device",
            ):
                return True
            if path.startswith("torch.distributed"):
                return True
    return False
