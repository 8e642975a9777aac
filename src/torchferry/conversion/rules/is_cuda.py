"""TF104: tensor.is_cuda."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.program.callees import Callee, class_of, lookup_of
from torchferry.conversion.program.definitions import class_around
from torchferry.conversion.program.functions import is_self
from torchferry.conversion.program.slots import scope_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.names import last_name
from torchferry.text import Text

_CHANGED = Text("Test for the {device} device", "判断是否在 {device} 设备上")
OWN = Message(
    Text("Own attribute `is_cuda`", "自定义的 `is_cuda`"),
    why=Text("It is not the tensor's attribute, so it stays.", "它不是张量的属性，因此保留。"),
)

_OPTIONS = re.compile(r"(?i)_?(args?|opts?|options|cfg|conf|config|hparams|params|flags|settings)$")
_SET = re.compile(rb"\bself\.is_cuda\s*(?::[^=\n]*)?=[^=]")


def _check(site: Site[ast.Attribute]) -> Iterator[Proposal]:
    node = site.node
    if node.attr != "is_cuda" or not isinstance(node.ctx, ast.Load):
        return
    resolved = site.resolve(node)
    if resolved is not None and resolved.qualified.startswith("torch."):
        return
    if is_option(node.value) or _is_own(site):
        yield site.remark(Kind.INFO, OWN)
        return
    message = _CHANGED.format(device=site.target.device.word or "current")
    if site.target.is_portable:
        opening = site.module.insertions_around(node, "(", "")
        closing = site.module.attribute_replacement(node, 'device.type != "cpu")')
        yield site.change(message, *opening, closing, needs_prelude=False)
    else:
        edit = site.module.attribute_replacement(node, site.target.vendor.is_attribute)
        yield site.change(message, edit)


def is_option(node: ast.expr) -> bool:
    """Whether an object holds settings, and is no tensor: `args` in args.is_cuda, `self.config`"""
    return bool(_OPTIONS.match(last_name(node)))


def _is_own(site: Site[ast.Attribute]) -> bool:
    """Whether the object is of a class of the project that sets self.is_cuda, or defines it."""
    owner = site.node.value
    of_class = class_around(site.context, site.scope) if is_self(owner) else class_of(site, owner)
    bases = lookup_of(site.context).all_bases
    return of_class is not None and any(map(_sets_it, (of_class, *bases(of_class))))


def _sets_it(callee: Callee) -> bool:
    module = callee.file.module
    scope = scope_of(callee.file, callee.node)
    if scope is not None and "is_cuda" in scope.bindings:
        return True
    return bool(_SET.search(module.data, module.start(callee.node), module.end(callee.node)))


RULE = Rule(
    id="TF104",
    name="is-cuda",
    summary=Text("Changes `tensor.is_cuda` to the target's attribute", "将 `tensor.is_cuda` 改为目标的属性"),
    triggers=("is_cuda",),
    nodes=(ast.Attribute,),
    check=_check,
)
