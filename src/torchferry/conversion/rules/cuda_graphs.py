"""TF503: CUDA graphs: renamed by the API table, with a word on how far the vendor's go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind
from torchferry.text import Text

_GRAPHS = Text("graph capture on {company}: {graphs}", "{company} 上的图捕获：{graphs}")
_UNKNOWN = Text("check that graph capture works on {company}", "请确认 {company} 支持图捕获")
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
    yield site.remark(Kind.RISK, text.format(company=vendor.company_name, graphs=vendor.graphs))


RULE = Rule(
    id="TF503",
    name="cuda-graphs",
    summary=Text("CUDA graphs, and how far the vendor's go", "CUDA 图，以及厂商的支持程度"),
    triggers=("cuda",),
    nodes=(ast.Attribute, ast.Name),
    check=_check,
    names=("torch.cuda.",),
)
