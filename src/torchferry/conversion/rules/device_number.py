"""TF122: numbers as devices in portable code: without an accelerator PyTorch knows no device 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.conversion.target import Target
from torchferry.text import Text

_CHANGED = Text("Number used as a device only where there is an accelerator", "仅在有加速卡时用数字表示设备")
_NUMBER = re.compile(
    r"(?i)(?:^|_)(?:gpus?|gpu_?(?:id|index|no|num)|(?:local_)?rank|device_?(?:id|index)|cuda_?id)\Z"
)
_HOPS = 3


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if not site.target.is_portable:
        return
    for value in _devices(site):
        if _is_number(site, value):
            text = site.module.segment(value)
            before, behind = site.target.around_place(text)
            behind = behind.replace(f" {text} is not None and", "") if text.isdigit() else behind
            yield site.change(_CHANGED, *site.module.insertions_around(value, before, behind), node=value)


def _devices(site: Site[ast.Call]) -> Iterator[ast.expr]:
    call = site.node
    is_move = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
    is_of_torch = site.name.startswith("torch.")
    if call.args and ((is_move and not is_of_torch) or (site.name == "torch.device" and len(call.args) == 1)):
        yield call.args[0]
    if is_move or is_of_torch:
        yield from (item.value for item in call.keywords if item.arg == "device")


def _is_number(site: Site[ast.Call], value: ast.expr, hops: int = _HOPS) -> bool:
    if isinstance(value, ast.Constant):
        return type(value.value) is int
    if isinstance(value, ast.Attribute):
        return bool(_NUMBER.search(value.attr))
    if not isinstance(value, ast.Name):
        return False
    binding = site.module.binding_of(value.id, site.scope, value.lineno)
    if binding is not None and binding.value is not None:
        return bool(hops) and _is_number(site, binding.value, hops - 1)
    return bool(_NUMBER.search(value.id))


def _prepare(target: Target) -> Rule:
    """Only portable code is looked at: for one vendor every line that moves something would be."""
    words = (".to(", "device=", "torch.device(") if target.is_portable else ()
    return replace(RULE, triggers=words)


RULE = Rule(
    id="TF122",
    name="device-number",
    summary=Text(
        "Uses numbers as devices only where there is an accelerator, in portable code",
        "在可移植代码中，仅在有加速卡时用数字表示设备",
    ),
    triggers=(),
    nodes=(ast.Call,),
    check=_check,
    prepare=_prepare,
)
