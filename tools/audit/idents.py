"""Classifies trigger words in code: names, attributes, imports, keywords."""

from __future__ import annotations

import ast
import re

from .model import HUMAN, KEEP, MUST, UNSURE, Call
from .names import Names, alias_path, called, module_path
from .paths import judge_path
from .tree import FUNCTIONS, Tree, Word

USER = Call(KEEP, "user identifier")
SETTINGS = re.compile(
    r"^_?(args?|opts?|options?|cfg|conf|config|configs|hparams|flags|FLAGS|namespace|parser|self|cls)$"
)

TORCH_ATTRIBUTES = re.compile(r"cuda_stream|cuda_event|(self_)?cuda_(time|memory)\w*|cudaProfiler\w+")


def judge_name(tree: Tree, names: Names, word: Word) -> Call:
    """The class of a name that holds a trigger word."""
    node = tree.at.get(word.start)
    if isinstance(node, ast.Attribute):
        return _attribute(tree, names, node)
    if isinstance(node, ast.Name):
        return _name(tree, names, node)
    if isinstance(node, ast.keyword):
        return _keyword(tree, names, node)
    statement = _import_at(tree, word)
    return _imported(tree, statement, word) if statement is not None else USER


def _name(tree: Tree, names: Names, node: ast.Name) -> Call:
    if not isinstance(node.ctx, ast.Load):
        return USER
    path = names.resolve(node)
    if path is None:
        return USER
    return judge_path(path, _chain(tree, path, node), _deciding(tree, node)) or USER


def _attribute(tree: Tree, names: Names, node: ast.Attribute) -> Call:
    path = names.resolve(node)
    if path is not None:
        call = judge_path(path, _chain(tree, path, node), _deciding(tree, node))
        if call is not None:
            return call
        parent = tree.parent(node)
        if node.attr == "cuda" and isinstance(parent, ast.Call) and parent.func is node:
            return Call(UNSURE, "cuda() of an imported object", path=path)
        return Call(KEEP, "name of another module", path=path)
    if node.attr == "cuda":
        return _cuda(tree, names, node)
    if node.attr == "is_cuda":
        return _is_cuda(tree, node)
    owner = called(node.value)
    if node.attr == "CUDA" and owner == "ProfilerActivity":
        return Call(MUST, "profiler activity")
    if node.attr == "NCCL" and owner == "Backend":
        return Call(MUST, "nccl backend constant")
    on_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    if TORCH_ATTRIBUTES.fullmatch(node.attr) and isinstance(node.ctx, ast.Load) and not on_self:
        return Call(UNSURE, "perhaps an attribute of a torch object")
    return USER


def _cuda(tree: Tree, names: Names, node: ast.Attribute) -> Call:
    parent = tree.parent(node)
    if not isinstance(node.ctx, ast.Load):
        if isinstance(node.value, ast.Name) and SETTINGS.match(node.value.id):
            return Call(KEEP, "user attribute assigned")
        return Call(UNSURE, "attribute cuda assigned")
    if isinstance(parent, ast.Call) and parent.func is node:
        return _cuda_call(tree, names, node)
    root = node.value
    if isinstance(root, ast.Name) and SETTINGS.match(root.id):
        return Call(KEEP, "user attribute read")
    if isinstance(root, ast.Attribute) and SETTINGS.match(root.attr):
        return Call(KEEP, "user attribute read")
    if isinstance(parent, ast.Attribute):
        return Call(KEEP, "attribute of a user's object")
    return Call(UNSURE, "attribute cuda read, not called")


def _cuda_call(tree: Tree, names: Names, node: ast.Attribute) -> Call:
    root = node.value
    if isinstance(root, ast.Name) and root.id in ("self", "cls"):
        owner = tree.enclosing(node, (ast.ClassDef,))
        if isinstance(owner, ast.ClassDef) and _defines(owner, "cuda"):
            return Call(UNSURE, "cuda() of a class that defines it")
    if isinstance(root, ast.Name):
        scope = names.is_local(root)
        for value in names.scopes[scope].values.get(root.id, ()) if scope else ():
            made = names.classes.get(called(value.func)) if isinstance(value, ast.Call) else None
            if made is not None and _defines(made, "cuda"):
                return Call(UNSURE, "cuda() of a user's class that defines it")
    return Call(MUST, ".cuda() call")


def _is_cuda(tree: Tree, node: ast.Attribute) -> Call:
    parent = tree.parent(node)
    if not isinstance(node.ctx, ast.Load):
        return Call(KEEP, "user attribute assigned")
    if isinstance(parent, ast.Call) and parent.func is node:
        return Call(KEEP, "user method is_cuda()")
    if isinstance(node.value, ast.Name) and SETTINGS.match(node.value.id):
        owner = tree.enclosing(node, (ast.ClassDef,))
        if isinstance(owner, ast.ClassDef) and _defines(owner, "is_cuda"):
            return Call(KEEP, "user attribute is_cuda")
        return Call(UNSURE, "is_cuda of self or of settings")
    return Call(MUST, ".is_cuda")


def _defines(owner: ast.ClassDef, name: str) -> bool:
    for node in ast.walk(owner):
        if isinstance(node, FUNCTIONS) and node.name == name:
            return True
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
    return False


def _keyword(tree: Tree, names: Names, node: ast.keyword) -> Call:
    call = tree.parent(node)
    if node.arg in ("use_cuda", "profile_cuda") and isinstance(call, ast.Call):
        path = names.resolve(call.func) or ""
        if path.startswith("torch.") and "profile" in path:
            return Call(HUMAN, "profiler argument", "profiler", path)
    return Call(KEEP, "keyword name")


def _chain(tree: Tree, path: str, node: ast.AST) -> str:
    parent = tree.parent(node)
    while isinstance(parent, ast.Attribute):
        path = f"{path}.{parent.attr}"
        parent = tree.parent(parent)
    return path


def _deciding(tree: Tree, node: ast.AST) -> bool:
    """Whether a class is made or derived from here, and not only mentioned."""
    parent = tree.parent(node)
    if isinstance(parent, ast.Call):
        return parent.func is node
    return isinstance(parent, ast.ClassDef)


def _import_at(tree: Tree, word: Word) -> ast.Import | ast.ImportFrom | None:
    line, _ = tree.lines.position(word.start)
    for node in tree.imports:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            start = tree.lines.offset_of_bytes(node.lineno, node.col_offset)
            end = tree.lines.offset_of_bytes(node.end_lineno or 0, node.end_col_offset or 0)
            if start <= word.start < end:
                return node
    return None


def _imported(tree: Tree, node: ast.Import | ast.ImportFrom, word: Word) -> Call:
    for alias in node.names:
        start = tree.lines.offset_of_bytes(alias.lineno, alias.col_offset)
        end = tree.lines.offset_of_bytes(alias.end_lineno or 0, alias.end_col_offset or 0)
        if start <= word.start < end:
            if word.start >= start + len(alias.name):
                return Call(KEEP, "local name of an import")
            path = alias_path(node, alias)
            return judge_path(path, path, False) or Call(KEEP, "name of another module", path=path)
    module = module_path(node) if isinstance(node, ast.ImportFrom) else ""
    chain = alias_path(node, node.names[0]) if len(node.names) == 1 else module
    return judge_path(module, chain, False) or Call(KEEP, "another module", path=module)
