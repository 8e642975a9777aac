"""TF703 (opt-in): DataLoader without pinned memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.common_edits import set_argument
from torchferry.conversion.loaders import DATA_LOADERS, makes_loader
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.text import Text

_CHANGED = Text("Pinned memory turned off, as the vendor's guide asks", "按厂商指南关闭锁页内存")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if not makes_loader(site):
        return
    if any(keyword.arg == "pin_memory" for keyword in site.node.keywords):
        edits = set_argument(site, "pin_memory", "False")
        if edits:
            yield site.change(_CHANGED, *edits, needs_prelude=False)


RULE = Rule(
    id="TF703",
    name="no-pin-memory",
    summary=Text("Sets `pin_memory=False` in data loaders", "为 DataLoader 设置 `pin_memory=False`"),
    triggers=("pin_memory",),
    option="no_pin_memory",
    tracks=DATA_LOADERS,
    nodes=(ast.Call,),
    check=_check,
)
