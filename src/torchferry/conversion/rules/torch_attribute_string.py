"""TF109: getattr(torch, 'cuda') and hasattr(torch, 'cuda')."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.common_edits import respell
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.conversion.target import Spelling
from torchferry.source.edits import Edit
from torchferry.text import Text

_CHANGED = Text("the attribute of torch that holds the device's functions", "torch 中存放设备函数的属性")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    call = site.node
    if (
        not isinstance(call.func, ast.Name)
        or call.func.id not in ("getattr", "hasattr")
        or len(call.args) < 2
    ):
        return
    owner, attribute = call.args[0], call.args[1]
    if (
        not isinstance(attribute, ast.Constant)
        or attribute.value != "cuda"
        or site.qualified(owner) != "torch"
    ):
        return
    spelling = site.target.device
    if not site.target.is_portable:
        spelling = Spelling(word=site.target.vendor.torch_module.rpartition(".")[2])
    edits: list[Edit] = respell(site.module, attribute, "cuda", spelling)
    if edits:
        yield site.change(_CHANGED, *edits, node=attribute)


RULE = Rule(
    id="TF109",
    name="torch-attribute-string",
    summary=Text(
        "getattr(torch, 'cuda') asks for the target's module", "getattr(torch, 'cuda') 改为目标设备的模块"
    ),
    triggers=("cuda",),
    nodes=(ast.Call,),
    check=_check,
)
