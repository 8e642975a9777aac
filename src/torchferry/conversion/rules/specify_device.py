"""TF704 (opt-in): the device of a script chosen by the environment variable DEVICE_ID."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.program.blocks import indent_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text
from torchferry.vendors.model import Support

_ADDED = Message(
    Text("Device chosen by the variable DEVICE_ID", "由环境变量 DEVICE_ID 选择设备"),
    why=Text(
        "A distributed set-up of the script's own may no longer work.", "可能影响脚本原有的分布式功能。"
    ),
)
_CHOSEN_BY_RANK = Message(
    Text("DEVICE_ID not added", "未添加 DEVICE_ID"),
    why=Text(
        "Each process already uses the card of its LOCAL_RANK.", "每个进程已按 LOCAL_RANK 使用各自的卡。"
    ),
)
_VARIABLE = "DEVICE_ID"


def _finish(context: FileContext, said: list[Proposal]) -> Iterator[Proposal]:
    module = context.module
    if _VARIABLE.encode() in module.data or context.target.is_portable:
        return
    if module.scopes.root.bindings.get("torch") is None:
        return
    main = _main_guard(module.tree)
    if main is None:
        return
    api = context.target.api("torch.cuda.set_device")
    if api.support not in (Support.SAME, Support.RENAMED):
        return
    first = main.body[0]
    start = module.start(first)
    if context.settings.distributed is not None:
        yield Proposal(Kind.INFO, start, start, _CHOSEN_BY_RANK)
        return
    indent = indent_of(module, first)
    joint = "; " if indent.strip() else module.newline + indent
    line = f'{api.name}(int(os.environ.get("{_VARIABLE}", "0")))'
    loads = "" if "os" in module.scopes.root.bindings else f"import os{joint}"
    edit = Edit(start, start, f"{loads}{line}{joint}")
    yield Proposal(Kind.CHANGE, start, start, _ADDED, (edit,), needs_prelude=True)


def _main_guard(tree: ast.Module) -> ast.If | None:
    for node in tree.body:
        if isinstance(node, ast.If):
            parts = list(ast.walk(node.test))
            words = {part.id for part in parts if isinstance(part, ast.Name)}
            words |= {str(part.value) for part in parts if isinstance(part, ast.Constant)}
            if {"__name__", "__main__"} <= words:
                return node
    return None


RULE = Rule(
    id="TF704",
    name="specify-device",
    summary=Text("Lets the variable DEVICE_ID choose the device", "由环境变量 DEVICE_ID 选择设备"),
    triggers=("cuda",),
    option="specify_device",
    finish=_finish,
)
