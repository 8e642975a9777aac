"""Setting a keyword argument of a call."""

from __future__ import annotations

import ast

from torchferry.convert.site import Site
from torchferry.source.edits import Edit

DATA_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})


def set_argument(site: Site[ast.Call], name: str, value: str) -> list[Edit]:
    """Edits that give an argument a value, whether the call names it already or not; none if it has that value."""
    call, module = site.node, site.module
    for keyword in call.keywords:
        if keyword.arg == name:
            start, end = module.start(keyword.value), module.end(keyword.value)
            return [] if module.data[start:end] == value.encode() else [Edit(start, end, value)]
    if any(keyword.arg is None for keyword in call.keywords):
        return []  # **options may name it
    last = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not last:
        return []
    end = max(module.end(node) for node in last)
    return [Edit(end, end, f", {name}={value}")]
