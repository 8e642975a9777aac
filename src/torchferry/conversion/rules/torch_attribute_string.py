"""TF109: getattr(torch, 'cuda') and hasattr(torch, 'cuda')."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.common_edits import respell
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.conversion.target import Spelling
from torchferry.text import Text

_CHANGED = Text("Attribute of torch changed to that of the device", "torch 的属性改为目标设备的属性")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    function, arguments = site.node.func, site.node.args
    if not isinstance(function, ast.Name) or function.id not in ("getattr", "hasattr") or len(arguments) < 2:
        return
    owner, attribute = arguments[:2]
    if text_of(attribute) != "cuda" or site.qualified(owner) != "torch":
        return
    spelling = site.target.device
    if not site.target.is_portable:
        spelling = Spelling(word=site.target.vendor.torch_module.rpartition(".")[2])
    edits = respell(site.module, attribute, "cuda", spelling)
    if edits:
        yield site.change(_CHANGED, *edits, node=attribute)


RULE = Rule(
    id="TF109",
    name="torch-attribute-string",
    summary=Text(
        "Changes `getattr(torch, 'cuda')` to the target's module",
        "将 `getattr(torch, 'cuda')` 改为目标的模块",
    ),
    triggers=("cuda",),
    nodes=(ast.Call,),
    check=_check,
)
