"""TF305: memory formats that a vendor's plugin refuses: reported, as the program stops there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message, Severity
from torchferry.text import Text

_REFUSED = Message(
    Text("`torch.{format}` is refused by {company}", "{company} 不接受 `torch.{format}`"),
    why=Text("The plugin raises an error.", "插件会报错。"),
    do=Text("Remove the memory format: the results are the same.", "请去掉该内存格式：结果不变。"),
    severity=Severity.DECISION,
)
_ARGUMENT = "memory_format"
_TAKEN = ("is_contiguous", "clone")  # with any format; the plugin answers, or leaves the format out
_LIKE = "_like"  # the same: empty_like, zeros_like ...


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    vendor = site.target.vendor
    if vendor is None or site.target.is_portable:
        return
    func = site.node.func
    called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if called in _TAKEN or called.endswith(_LIKE):
        return
    for argument in site.node.keywords:
        name = site.qualified(argument.value) if argument.arg == _ARGUMENT else None
        if name is not None and name.removeprefix("torch.") in vendor.refused_memory_formats:
            found = name.removeprefix("torch.")
            yield site.remark(Kind.UNSUPPORTED, _REFUSED.format(company=vendor.company_name, format=found))


RULE = Rule(
    id="TF305",
    name="memory-format",
    summary=Text("Reports memory formats that the vendor's plugin refuses", "报告厂商插件不接受的内存格式"),
    triggers=("channels_last",),
    roots=("torch",),
    nodes=(ast.Call,),
    check=_check,
)
