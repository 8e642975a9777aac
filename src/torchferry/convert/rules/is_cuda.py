"""TF104: tensor.is_cuda."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.text import Text

_CHANGED = Text("asks whether the tensor is on the {device} device", "判断张量是否在 {device} 设备上")
_OWN = Text(
    "is_cuda is also defined in this project; decide whether this is the tensor's or your own",
    "本项目自己也定义了 is_cuda；请确认此处是张量的属性还是您自己的",
)


def _check(site: Site[ast.Attribute]) -> Iterator[Proposal]:
    node = site.node
    if node.attr != "is_cuda" or not isinstance(node.ctx, ast.Load):
        return
    resolved = site.resolve(node)
    if resolved is not None and resolved.qualified.startswith("torch."):
        return
    if "is_cuda" in site.context.project.own_methods:
        yield site.remark(Kind.TODO, _OWN)
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
