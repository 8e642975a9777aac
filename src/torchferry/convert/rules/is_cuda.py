"""TF104: tensor.is_cuda."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site, enclosing_class
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.names import last_name
from torchferry.text import Text

_CHANGED = Text("asks whether the tensor is on the {device} device", "判断张量是否在 {device} 设备上")
_OWN = Text(
    "left as it is: an is_cuda of your own, not the tensor's", "保持不变：是您自己的 is_cuda，而非张量的"
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
    if _is_option(node.value) or (
        isinstance(node.value, ast.Name) and node.value.id == "self" and _is_own(site)
    ):
        yield site.remark(Kind.INFO, _OWN)
        return
    start, end = site.module.attribute_span(node)
    message = _CHANGED.format(device=site.target.device.word or "current")
    if site.target.is_portable:
        opening = site.module.start(node)
        yield site.change(
            message,
            Edit(opening, opening, "("),
            Edit(start, end, 'device.type != "cpu")'),
            needs_prelude=False,
        )
    else:
        yield site.change(message, Edit(start, end, site.target.vendor.is_attribute))


def _is_option(node: ast.expr) -> bool:
    """args.is_cuda, self.config.is_cuda: a setting, not a tensor"""
    return bool(_OPTIONS.match(last_name(node)))


def _is_own(site: Site[ast.Attribute]) -> bool:
    """Whether the class around sets self.is_cuda, or defines it."""
    scope = enclosing_class(site.scope)
    if scope is None:
        return False
    if "is_cuda" in scope.bindings:
        return True
    start, end = site.module.start(scope.node), site.module.end(scope.node)
    return bool(_SET.search(site.module.data, start, end))


RULE = register(
    Rule(
        id="TF104",
        name="is-cuda",
        summary=Text("tensor.is_cuda becomes the target's attribute", "tensor.is_cuda 换成目标设备的属性"),
        triggers=("is_cuda",),
        nodes=(ast.Attribute,),
        check=_check,
    )
)
