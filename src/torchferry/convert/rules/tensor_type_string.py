"""TF106: names of tensor types in strings: 'torch.cuda.FloatTensor'."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.convert.literal_edits import rewrite_inside
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.rules.torch_cuda_api import api_of
from torchferry.convert.site import Site
from torchferry.finding import Kind
from torchferry.text import Text
from torchferry.vendors.model import Support

_TYPE = re.compile(r"torch\.cuda\.(?:sparse\.)?[A-Z]\w*(?:Tensor|Storage)\Z")
_CHANGED = Text("names the tensor type of the target: {new}", "目标设备的张量类型：{new}")
_UNSUPPORTED = Text(
    "{company} has no tensor type {old}; use dtype and device",
    "{company} 没有张量类型 {old}；请改用 dtype 和 device",
)


def _check(site: Site[ast.Constant]) -> Iterator[Proposal]:
    value = site.node.value
    if not isinstance(value, str) or not _TYPE.match(value) or isinstance(site.parent, ast.JoinedStr):
        return
    if isinstance(site.parent, ast.Expr):
        return
    vendor = site.target.vendor
    api = api_of(site.target, value)[1]
    if api.support is Support.UNSUPPORTED or site.target.is_portable:
        yield site.remark(Kind.UNSUPPORTED, _UNSUPPORTED.format(company=vendor.company, old=value))
        return
    edits = rewrite_inside(site.module, site.node, [(value, api.name)])
    if edits:
        yield site.change(_CHANGED.format(new=api.name), *edits)


RULE = register(
    Rule(
        id="TF106",
        name="tensor-type-string",
        summary=Text(
            "'torch.cuda.FloatTensor' and its kin in strings", "字符串中的 'torch.cuda.FloatTensor' 等类型名"
        ),
        triggers=("torch.cuda.",),
        nodes=(ast.Constant,),
        check=_check,
    )
)
