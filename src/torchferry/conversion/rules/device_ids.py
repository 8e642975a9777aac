"""TF205: device_ids of DistributedDataParallel in code that must also run on the CPU, where they are an error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.text import Text

_CHANGED = Text(
    "Device ids left out on the CPU, where torch refuses them", "在 CPU 上不传设备编号，否则 torch 会报错"
)
_NAMES = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
        "torch.distributed.barrier",
        "torch.distributed.distributed_c10d.barrier",
    }
)
_ARGUMENTS = ("device_ids", "output_device")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if not site.target.is_portable or site.qualified(site.node.func) not in _NAMES:
        return
    before, after = site.target.around_ids()
    for keyword in site.node.keywords:
        value = keyword.value
        if keyword.arg not in _ARGUMENTS or _is_told(site, value):
            continue
        yield site.change(_CHANGED, *site.module.insertions_around(value, before, after), node=keyword)


def _is_told(site: Site[ast.Call], value: ast.expr) -> bool:
    """Whether the argument depends on the device already, or is none."""
    if isinstance(value, (ast.IfExp, ast.Lambda)):
        return True
    if isinstance(value, ast.Constant):
        return value.value is None
    helper = site.target.helper
    return helper is not None and site.module.segment(value).startswith(f"{helper.name}.")


RULE = Rule(
    id="TF205",
    name="device-ids",
    summary=Text(
        "Leaves out `device_ids` on the CPU, in code for every device",
        "在通用代码中，于 CPU 上不传 `device_ids`",
    ),
    triggers=("device_ids", "output_device"),
    tracks=_NAMES,
    nodes=(ast.Call,),
    check=_check,
    names=("torch.",),
)
