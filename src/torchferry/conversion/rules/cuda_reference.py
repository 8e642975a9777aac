"""TF112: the method cuda without its call: `move = x.cuda`, `map(x.cuda, ...)`, getattr(x, 'cuda')()."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.common_edits import respell
from torchferry.conversion.program.callees import passed_to
from torchferry.conversion.program.functions import is_self
from torchferry.conversion.program.reads import reads_of
from torchferry.conversion.program.slots import AnySite, Keys, Slot
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.rules.cuda_method import reason_to_leave
from torchferry.conversion.rules.is_cuda import is_option
from torchferry.conversion.site import Site
from torchferry.conversion.target import Spelling
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.text import Text

_CHANGED = Text("Method that moves to the {device} device", "移到 {device} 设备的方法")
_PORTABLE = Message(
    Text("Reference to the method `cuda`", "对 `cuda` 方法的引用"),
    why=Text("The method is called somewhere else.", "该方法在其他位置调用。"),
    do=Text("Write a function that calls `.to({device})`.", "请改写为调用 `.to({device})` 的函数。"),
)
_UNCLEAR = Message(
    Text("Attribute `cuda` that may be the method", "可能是方法的属性 `cuda`"),
    why=Text(
        "It may be the method of a tensor or module, or your own flag.",
        "它可能是张量或模块的方法，也可能是您自己的标志。",
    ),
    do=Text("If it is the method, {instead}.", "若是方法，{instead}。"),
)
_METHOD = Text("write .{method}", "请改为 .{method}")
_FUNCTION = Text("write a function that calls .to({device})", "请改写为调用 .to({device}) 的函数")
_FLAG = re.compile(rb"\.cuda\s*(?::[^=\n]*)?=[^=]|--(?:use[-_])?(?:no[-_])?cuda\b")
_VALUES = (
    ast.Assign,
    ast.AnnAssign,
    ast.Return,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Call,
    ast.NamedExpr,
    ast.Lambda,
)
_TAKE_FUNCTIONS = frozenset({"map", "filter", "partial", "starmap", "tree_map", "submit", "methodcaller"})


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    node = site.node
    if isinstance(node, ast.Attribute):
        is_read = node.attr == "cuda" and isinstance(node.ctx, ast.Load)
        if is_read and _is_method(site):
            yield _at_attribute(site, node)
        elif is_read and _may_be_method(site, node):
            instead = _METHOD.format(method=site.target.vendor.tensor_method)
            if site.target.is_portable:
                instead = _FUNCTION.format(device=site.target.device.expression)
            yield site.remark(Kind.TODO, _UNCLEAR.format(instead=instead))
    elif isinstance(node, ast.Constant) and node.value == "cuda" and names_called_method(site):
        if site.target.is_portable:
            yield site.remark(Kind.TODO, _PORTABLE.format(device=site.target.device.expression))
            return
        edits = respell(site.module, node, "cuda", Spelling(word=site.target.vendor.tensor_method))
        if edits:
            yield site.change(_CHANGED.format(device=site.target.device.word), *edits)


def names_called_method(site: AnySite) -> bool:
    """Whether a string names a method that is called on the spot: getattr(x, 'cuda')(), methodcaller('cuda')."""
    parent, outer = site.parent, site.place.outer
    if not isinstance(parent, ast.Call) or outer is None:
        return False
    if called_name(parent) == "methodcaller":
        return parent.args[:1] == [site.node]
    return (
        called_name(parent) == "getattr"
        and parent.args[1:] == [site.node]
        and isinstance(outer.parent, ast.Call)
        and outer.parent.func is parent
        and site.qualified(parent.args[0]) != "torch"
    )


def _is_method(site: AnySite) -> bool:
    """Whether `x.cuda` is the method; far more often it is a flag of the user's own (`args.cuda`)."""
    parent, node = site.parent, site.node
    resolved = site.resolve(node)
    if isinstance(parent, ast.Attribute) or (resolved and resolved.binding and "." in resolved.qualified):
        return False  # a longer name, or one that an import explains
    if isinstance(parent, ast.Call) and node is parent.func:
        return False
    if isinstance(parent, ast.Call) and called_name(parent) in _TAKE_FUNCTIONS:
        return node is parent.args[0]
    if isinstance(parent, ast.IfExp) and node is not parent.test:
        other = parent.orelse if node is parent.body else parent.body
        return isinstance(other, ast.Attribute) and other.attr == "cpu"
    return any(_is_called(slot, site) for slot in passed_to(site))


def _may_be_method(site: Site[ast.expr], node: ast.Attribute) -> bool:
    """Whether a value that is kept or handed on may be the method, although nobody is seen to call it."""
    if not isinstance(site.parent, _VALUES) or (
        isinstance(site.parent, ast.Call) and site.parent.func is node
    ):
        return False
    if site.resolve(node) is not None or _FLAG.search(site.module.data):
        return False
    owner: ast.expr = node.value
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        if is_option(owner):
            return False
        owner = owner.value
    return not (is_option(owner) or is_self(owner))


def _is_called(slot: Slot, site: AnySite) -> bool:
    view = site.context.beside(slot.path)
    if view is None or isinstance(slot, Keys):
        return False
    reads = reads_of(view, slot)
    return any(isinstance(read.parent, ast.Call) and read.parent.func is read.node for read in reads)


def _at_attribute(site: Site[ast.expr], node: ast.Attribute) -> Proposal:
    own = reason_to_leave(site, node)
    if own is not None:
        return site.remark(Kind.INFO, own)
    if site.target.is_portable:
        return site.remark(Kind.TODO, _PORTABLE.format(device=site.target.device.expression))
    edit = site.module.attribute_replacement(node, site.target.vendor.tensor_method)
    return site.change(_CHANGED.format(device=site.target.device.word), edit)


RULE = Rule(
    id="TF112",
    name="cuda-reference",
    summary=Text(
        "Changes the method `cuda` where it is kept, passed on or looked up by name, and called later",
        "修改被保存、传递或按名称取得并在之后调用的 `cuda` 方法",
    ),
    triggers=("cuda",),
    nodes=(ast.Attribute, ast.Constant),
    check=_check,
)
