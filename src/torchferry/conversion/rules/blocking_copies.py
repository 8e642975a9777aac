"""TF708 (opt-in): copies to the device that wait: non_blocking=False."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.text import Text

_WAITS = Text(
    "Copy made blocking, because an asynchronous copy from unpinned memory may be read too early",
    "改为阻塞拷贝：从未锁页的内存异步拷贝可能被过早读取",
)


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    for keyword in site.node.keywords:
        is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        if keyword.arg == "non_blocking" and is_true:
            edit = site.module.replacement(keyword.value, "False")
            yield site.change(_WAITS, edit, node=keyword, needs_prelude=False)


RULE = Rule(
    id="TF708",
    name="blocking-copies",
    summary=Text("Copies to the device with `non_blocking=False`", "以 `non_blocking=False` 拷贝到设备"),
    triggers=("non_blocking",),
    option="blocking_copies",
    nodes=(ast.Call,),
    check=_check,
)
