"""TF121: "gpu" and "gpu:0" where torch takes them for a device: PyTorch has no device of that name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from torchferry.conversion.common_edits import respell
from torchferry.conversion.inference.evidence import RoleVerdict
from torchferry.conversion.inference.uses import role_of
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.rules.device_string import DEVICES
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text

_CHANGED = Text(
    "Device string changed from `gpu`, which PyTorch does not know",
    "修改设备字符串：PyTorch 没有名为 `gpu` 的设备",
)
_REPORTED = Message(
    Text("String `gpu` that may reach PyTorch", "可能传给 PyTorch 的字符串 `gpu`"),
    why=Text("PyTorch has no device of this name.", "PyTorch 没有名为 `gpu` 的设备。"),
    do=Text("If it reaches PyTorch, write {new}.", "若会传给 PyTorch，请改为 {new}。"),
)
_WORD = re.compile(r"gpu(?::(?:\d+|%[sdi]|\{[^{}]*\})?)?\Z")
_FIRST = (0,)
# What torch does with a value is the only evidence here: many programs have a word "gpu" of their own.
_IN_TORCH = replace(
    DEVICES,
    noun=Text("device of PyTorch", "PyTorch 设备"),  # answers are kept by it
    name=re.compile(r"(?!)"),
    own=re.compile(r"gpu(?::|$)"),
    siblings=frozenset(),
    functions={**DEVICES.functions, "torch.cuda.set_device": _FIRST, "torch.cuda.device": _FIRST},
)
_NAMED = replace(DEVICES, noun=Text("device by its name", "按名称判断的设备"), own=_IN_TORCH.own)


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    word = _word(site.node)
    if not word or isinstance(site.parent, ast.JoinedStr):
        return
    if _is_argument_of_torch(site) or role_of(site, _IN_TORCH).verdict is RoleVerdict.YES:
        edits = respell(site.module, site.node, "gpu", site.target.device)
        if edits:
            yield site.change(_CHANGED, *edits)
            return
    elif ":" not in word or role_of(site, _NAMED).verdict is not RoleVerdict.YES:
        return
    yield site.remark(Kind.TODO, _REPORTED.format(new=site.target.device.shown))


def _word(node: ast.expr) -> str:
    """The text that a string begins with, without what is filled in; "" if it does not name a gpu."""
    if isinstance(node, ast.JoinedStr):
        return "gpu:" if len(node.values) == 2 and text_of(node.values[0]) == "gpu:" else ""
    return text_of(node) if _WORD.match(text_of(node)) else ""


def _is_argument_of_torch(site: Site[ast.expr]) -> bool:
    """torch.zeros(2, device="gpu"), torch.load(f, map_location="gpu:0")"""
    call = site.place.outer.parent if site.place.outer else None
    return (
        isinstance(site.parent, ast.keyword)
        and site.parent.arg in ("device", "map_location", "device_type")
        and isinstance(call, ast.Call)
        and site.qualified(call.func).startswith("torch.")
    )


RULE = Rule(
    id="TF121",
    name="gpu-string",
    summary=Text(
        'Changes strings `"gpu"` and `"gpu:0"` that PyTorch would take for a device',
        '修改 PyTorch 会当作设备的字符串 `"gpu"` 和 `"gpu:0"`',
    ),
    triggers=('"gpu', "'gpu"),
    nodes=(ast.Constant, ast.JoinedStr),
    check=_check,
)
