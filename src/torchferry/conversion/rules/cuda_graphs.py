"""TF503: CUDA graphs: renamed by the API table, with a word on how far the vendor's go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

_GRAPHS = Message(
    Text("CUDA graphs on {company}", "{company} 上的 CUDA 图"),
    why=Text("{graphs}", "{graphs}"),
    do=Text(
        "Try the capture on the device; without graphs the program is slower, not wrong.",
        "请在设备上验证图捕获；不使用图只会变慢，不会出错。",
    ),
)
_UNKNOWN = Message(
    Text("CUDA graphs on {company}", "{company} 上的 CUDA 图"),
    why=Text("No public source says whether graph capture works.", "没有公开资料说明图捕获是否可用。"),
    do=Text(
        "Try the capture on the device; without graphs the program is slower, not wrong.",
        "请在设备上验证图捕获；不使用图只会变慢，不会出错。",
    ),
)
_NAMES = frozenset(
    f"torch.cuda.{module}{name}"
    for module in ("", "graphs.")
    for name in ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle")
)


def _check(site: Site[ast.Attribute]) -> Iterator[Proposal]:
    if isinstance(site.parent, ast.Attribute) or site.qualified(site.node) not in _NAMES:
        return
    vendor = site.target.vendor
    text = _GRAPHS if vendor.graphs else _UNKNOWN
    yield site.remark(Kind.RISK, text.format(company=vendor.company_name, graphs=phrase(vendor.graphs)))


RULE = Rule(
    id="TF503",
    name="cuda-graphs",
    summary=Text("Reports CUDA graphs with what the vendor supports", "报告 CUDA 图及厂商的支持情况"),
    triggers=("cuda",),
    nodes=(ast.Attribute, ast.Name),
    check=_check,
    names=("torch.cuda.",),
)
