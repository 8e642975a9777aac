"""TF402: nvidia-smi in command strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.inference.roles import is_message
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind
from torchferry.text import Text

_TOOLS = ("nvidia-smi", "nvcc ", "nvprof ", "nsys ")
_SMI = Text(
    "calls {tool}, which is not there; {company} has `{smi}`, whose output looks different",
    "调用了 {tool}，目标环境没有；{company} 提供 `{smi}`，输出格式不同",
)
_NONE = Text("calls {tool}, which is not there", "调用了 {tool}，目标环境没有")


def _check(site: Site[ast.Constant]) -> Iterator[Proposal]:
    text = text_of(site.node)
    tool = next((name for name in _TOOLS if name in text), "")
    if not tool or isinstance(site.parent, ast.Expr) or is_message(site):
        return
    vendor = site.target.vendor
    if tool == "nvidia-smi" and vendor.smi:
        yield site.remark(Kind.TODO, _SMI.format(tool=tool, company=vendor.company_name, smi=vendor.smi))
    else:
        yield site.remark(Kind.TODO, _NONE.format(tool=tool.strip()))


RULE = Rule(
    id="TF402",
    name="nvidia-tools",
    summary=Text("calls of nvidia-smi and other tools of NVIDIA's", "对 nvidia-smi 等 NVIDIA 工具的调用"),
    triggers=("nvidia-smi", "nvcc", "nvprof", "nsys"),
    nodes=(ast.Constant,),
    check=_check,
)
