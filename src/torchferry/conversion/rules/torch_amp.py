"""TF301: torch.cuda.amp where the target uses torch.amp, whose functions must be told the device type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.common_edits import add_argument
from torchferry.conversion.renaming import renamed
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

_TOLD = Text("Device type passed to `torch.amp`", "为 `torch.amp` 指明设备类型")
_NOT_CALLED = Message(
    Text("`torch.amp.{name}` without a device type", "`torch.amp.{name}` 未指明设备类型"),
    why=Text(
        "`torch.amp` needs the device type as its first argument.", "`torch.amp` 的首个参数须为设备类型。"
    ),
    do=Text("Pass {device} first where it is called.", "请在调用处将 {device} 作为首个参数。"),
)

# torch.cuda.amp.autocast(enabled, dtype, cache_enabled) against torch.amp.autocast(device_type, dtype, enabled, ...)
_PARAMETERS = {
    "autocast": ("enabled", "dtype", "cache_enabled"),
    "GradScaler": ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"),
}
_DECORATORS = frozenset({"custom_fwd", "custom_bwd"})


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    parent = site.parent
    if isinstance(parent, ast.Attribute):
        return
    qualified = site.qualified(site.node)
    if not qualified.startswith("torch.cuda.amp"):
        return
    new = renamed(site.context, qualified)
    name = new.rpartition(".")[2]
    if not new.startswith("torch.amp.") or name not in (*_PARAMETERS, *_DECORATORS):
        return
    target = site.target
    device = target.device.expression
    if target.device.word:
        device = f'"{target.vendor.autocast_device_type or target.device.word}"'
    call = parent if isinstance(parent, ast.Call) and parent.func is site.node else None
    if call is not None and not any(isinstance(item, ast.Starred) for item in call.args):
        yield site.change(_TOLD, *_call_edits(site, call, name, device), node=call)
    elif name in _DECORATORS and parent is None:
        yield site.change(_TOLD, site.module.insertion_after(site.node, f"(device_type={device})"))
    else:
        yield site.remark(Kind.TODO, _NOT_CALLED.format(name=name, device=device))


def _call_edits(site: Site[ast.expr], call: ast.Call, name: str, device: str) -> Iterator[Edit]:
    """The device type first; positional arguments by keyword, because torch.amp has them in another order."""
    if name in _DECORATORS:
        yield add_argument(site.module, call, f"device_type={device}")
        return
    opening = site.module.data.index(b"(", site.module.end(call.func)) + 1
    named = list(zip(_PARAMETERS[name], call.args, strict=False))
    head = f"{device}, " if call.args or call.keywords else device
    if named and site.module.start(named[0][1]) == opening:
        head += f"{named.pop(0)[0]}="
    yield Edit(opening, opening, head)
    for parameter, argument in named:
        yield from site.module.insertions_around(argument, f"{parameter}=", "")


RULE = Rule(
    id="TF301",
    name="torch-amp",
    summary=Text("Passes the device type to calls of `torch.amp`", "为 `torch.amp` 的调用传入设备类型"),
    triggers=("cuda",),
    nodes=(ast.Attribute, ast.Name),
    check=_check,
    names=("torch.cuda.amp",),
)
