"""TF116: attributes that are asked for by name: getattr(x, 'is_cuda'), getattr(torch.cuda, 'synchronize')."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.common_edits import rewrite_inside
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.rules.is_cuda import OWN, is_option
from torchferry.conversion.rules.torch_cuda_api import RENAMED, api_of
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.text import Text
from torchferry.vendors.model import Support

_CHANGED = Text("Attribute name changed to that of the {device} device", "属性名改为 {device} 设备的属性")
_PORTABLE = Message(
    Text("`is_cuda` looked up by name", "按名称查询 `is_cuda`"),
    why=Text("The attribute is always False on the target.", "在目标上该属性始终为 False。"),
    do=Text("Compare `x.device.type` with {device} instead.", "请改为比较 `x.device.type` 与 {device}。"),
)
_MISSING = Message(
    Text("`{old}` has no equivalent on {company}", "{company} 没有与 `{old}` 等价的接口"),
    why=Text(
        "It is looked up by name here, so the call fails when the program runs.",
        "此处按名称查询它，程序运行时会失败。",
    ),
    do=Text(
        "Remove the lookup, or guard it so that it runs on CUDA only.",
        "请删除该查询，或加判断使其只在 CUDA 上执行。",
    ),
)
_UNKNOWN = Message(
    Text("`{new}` may not exist", "`{new}` 可能不存在"),
    why=Text(
        "No public source lists it, and it is looked up by name here.", "没有公开资料列出它，此处按名称查询。"
    ),
    do=Text("Try it on the device.", "请在设备上验证。"),
)
_ELSEWHERE = Message(
    Text("`{old}` looked up by name", "按名称查询 `{old}`"),
    do=Text("Write `{new}` instead.", "请改写为 `{new}`。"),
)
_AT_RUN_TIME = Message(
    Text("Name under `torch.cuda` that is computed at run time", "运行时才确定的 `torch.cuda` 名称"),
    do=Text("Check that `{module}` has the names that arrive here.", "请确认 `{module}` 中存在这些名称。"),
)
_ASKING = frozenset({"getattr", "hasattr", "setattr", "delattr", "getattr_static"})


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    call = site.node
    name = called_name(call)
    if name == "attrgetter" and len(call.args) == 1:
        yield from _flag(site, None, call.args[0])
    elif name in _ASKING and len(call.args) >= 2:
        owner, attribute = call.args[:2]
        if site.qualified(owner) == "torch.cuda":
            yield from _member(site, attribute)
        elif name != "setattr":
            yield from _flag(site, owner, attribute)


def _flag(site: Site[ast.Call], owner: ast.expr | None, attribute: ast.expr) -> Iterator[Proposal]:
    """getattr(x, 'is_cuda')"""
    if not isinstance(attribute, ast.Constant) or attribute.value != "is_cuda":
        return
    new = site.target.vendor.is_attribute
    if owner is not None and is_option(owner):
        yield site.remark(Kind.INFO, OWN, attribute)
    elif site.target.is_portable:
        yield site.remark(Kind.TODO, _PORTABLE.format(device=site.target.device.expression), attribute)
    elif new != "is_cuda":
        edits = rewrite_inside(site.module, attribute, [("is_cuda", new)])
        message = _CHANGED.format(device=site.target.device.word)
        yield site.change(message, *edits, node=attribute) if edits else site.remark(Kind.TODO, message)


def _member(site: Site[ast.Call], attribute: ast.expr) -> Iterator[Proposal]:
    """getattr(torch.cuda, 'synchronize'): the module is renamed by TF102, its member is looked at here."""
    vendor = site.target.vendor
    if not isinstance(attribute, ast.Constant) or not isinstance(attribute.value, str):
        yield site.remark(Kind.INFO, _AT_RUN_TIME.format(module=vendor.torch_module), attribute)
        return
    name = attribute.value
    if not name.isidentifier():
        return
    old, api = api_of(site.target, f"torch.cuda.{name}")
    module, _, new = api.name.rpartition(".")
    if api.support is Support.UNSUPPORTED:
        message = _MISSING.format(company=vendor.company_name, old=old)
        yield site.remark(Kind.UNSUPPORTED, message, attribute)
    elif "(" in api.name or (module and module != vendor.torch_module):
        yield site.remark(Kind.TODO, _ELSEWHERE.format(old=old, new=api.name), attribute)
    elif api.support is Support.UNKNOWN:
        yield site.remark(Kind.UNKNOWN, _UNKNOWN.format(new=api.name), attribute)
    elif new != name and old == f"torch.cuda.{name}":
        edits = rewrite_inside(site.module, attribute, [(name, new)])
        yield site.change(RENAMED.format(old=old, new=api.name), *edits, node=attribute)


RULE = Rule(
    id="TF116",
    name="attribute-string",
    summary=Text(
        "Changes `getattr(x, 'is_cuda')`, and reports names under `torch.cuda` that are looked up by name",
        "修改 `getattr(x, 'is_cuda')`，并报告按名称查询的 `torch.cuda` 接口",
    ),
    triggers=("cuda",),
    nodes=(ast.Call,),
    check=_check,
)
