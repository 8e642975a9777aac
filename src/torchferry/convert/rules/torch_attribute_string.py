"""TF109: getattr(torch, 'cuda') and hasattr(torch, 'cuda')."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.literal_edits import respell
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site
from torchferry.convert.target import Spelling
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.text import Text

_CHANGED = Text("the attribute of torch that holds the device's functions", "torch 中存放设备函数的属性")


_PORTABLE = Text(
    "asks torch for its CUDA module by name; torch.get_device_module() gives that of the device that is there",
    "按名称向 torch 索取 CUDA 模块；torch.get_device_module() 可得到实际设备的模块",
)


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
    if site.target.is_portable:
        yield site.remark(Kind.TODO, _PORTABLE, attribute)
        return
    word = site.target.vendor.torch_module.rpartition(".")[2]
    edits: list[Edit] = respell(site.module, attribute, "cuda", Spelling(word=word))
    if edits:
        yield site.change(_CHANGED, *edits, node=attribute)


RULE = register(
    Rule(
        id="TF109",
        name="torch-attribute-string",
        summary=Text(
            "getattr(torch, 'cuda') asks for the target's module", "getattr(torch, 'cuda') 改为目标设备的模块"
        ),
        triggers=("cuda",),
        nodes=(ast.Call,),
        check=_check,
    )
)
