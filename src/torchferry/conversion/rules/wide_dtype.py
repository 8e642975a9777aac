"""TF303: float64 and complex types that the vendor limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

_LIMITED = Message(
    Text("{dtype} on {company}", "{company} 上的 {dtype}"),
    why=Text("{limit}", "{limit}"),
    do=Text(
        "Use a narrower type if the program does not need this precision; otherwise check its results on the "
        "device.",
        "若程序不需要该精度，请改用较窄的类型；否则请在设备上检查结果。",
    ),
)
_NAMES = {
    "torch.float64": "float64",
    "torch.double": "float64",
    "torch.DoubleTensor": "float64",
    "torch.complex64": "complex64",
    "torch.complex128": "complex128",
    "torch.cfloat": "complex64",
    "torch.cdouble": "complex128",
}


def _rename(qualified: str, context: FileContext) -> Rename | None:
    dtype = _NAMES.get(qualified)
    message = _message(dtype, context) if dtype else None
    return Rename(qualified, "", Kind.RISK, message) if message else None


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    """tensor.double()"""
    function = site.node.func
    if not isinstance(function, ast.Attribute) or function.attr != "double" or site.node.args:
        return
    message = _message("float64", site.context)
    if message and not site.qualified(function):
        yield site.remark(Kind.RISK, message)


def _message(dtype: str, context: FileContext) -> Message | None:
    vendor = context.target.vendor
    limit = vendor.dtypes.get(dtype)
    if dtype.startswith("complex"):
        limit = limit or vendor.dtypes.get("complex")
    if not limit or limit == "unknown":
        return None
    return _LIMITED.format(dtype=dtype, company=vendor.company_name, limit=phrase(limit))


RULE = Rule(
    id="TF303",
    name="wide-dtype",
    summary=Text(
        "Reports float64 and complex types that the vendor limits", "报告厂商有限制的 float64 与复数类型"
    ),
    triggers=(
        "torch.float64",
        "torch.double",
        ".double()",
        "torch.complex",
        "torch.cfloat",
        "torch.cdouble",
        "DoubleTensor",
    ),
    tracks=frozenset({"torch"}),
    roots=("torch",),
    nodes=(ast.Call,),
    check=_check,
    rename=_rename,
)
