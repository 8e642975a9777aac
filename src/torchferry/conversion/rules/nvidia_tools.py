"""TF402: nvidia-smi in command strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.inference.roles import is_message
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text

_TOOLS = ("nvidia-smi", "nvcc ", "nvprof ", "nsys ")
_SMI = Message(
    Text("Call of `{tool}`", "调用 `{tool}`"),
    why=Text(
        "The tool does not exist on the target, and the output of {company}'s `{smi}` looks different.",
        "目标环境没有该工具，{company} 的 `{smi}` 输出格式不同。",
    ),
    do=Text(
        "Call `{smi}` and adapt what reads the output, or skip the call on the target.",
        "请改为调用 `{smi}` 并调整读取输出的代码，或在目标上跳过该调用。",
    ),
)
_NONE = Message(
    Text("Call of `{tool}`", "调用 `{tool}`"),
    why=Text("The tool does not exist on the target.", "目标环境没有该工具。"),
    do=Text("Skip the call on the target.", "请在目标上跳过该调用。"),
)


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
    summary=Text(
        "Reports calls of `nvidia-smi` and other NVIDIA tools", "报告对 `nvidia-smi` 等 NVIDIA 工具的调用"
    ),
    triggers=("nvidia-smi", "nvcc", "nvprof", "nsys"),
    nodes=(ast.Constant,),
    check=_check,
)
