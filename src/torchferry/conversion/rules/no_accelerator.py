"""TF111: calls that need an accelerator, in code that names none and must also run on the CPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

_SKIPPED = Text("Call skipped on the CPU, where torch refuses it", "在 CPU 上跳过，否则 torch 会报错")
_VALUED = Text(
    "`{value}` used on the CPU, where torch refuses the call", "在 CPU 上取 `{value}`，否则 torch 会报错"
)
_NEEDED = Message(
    Text("`{name}` does not exist on the CPU", "torch 在 CPU 上没有 `{name}`"),
    why=Text(
        "The portable program may also run on a machine without an accelerator.",
        "可移植程序也可能在没有加速卡的机器上运行。",
    ),
    do=Text("If it does, put this under a condition.", "若是，请加条件判断。"),
)
_CUDA = "torch.cuda."
_SUBMODULES = ("memory.", "random.")
_NOTHING = re.compile(
    r"(?:empty_cache|init|ipc_collect|manual_seed|manual_seed_all|reset_accumulated_memory_stats"
    r"|reset_max_memory_allocated|reset_max_memory_cached|reset_peak_memory_stats|seed|seed_all"
    r"|set_device|set_per_process_memory_fraction|set_rng_state|set_rng_state_all|set_stream"
    r"|synchronize)\Z"
)
_VALUES = {
    **dict.fromkeys(("max_memory_allocated", "max_memory_cached", "max_memory_reserved"), "0"),
    **dict.fromkeys(("memory_allocated", "memory_cached", "memory_reserved"), "0"),
    **dict.fromkeys(("current_device", "initial_seed", "utilization"), "0"),
    **dict.fromkeys(("get_device_capability", "mem_get_info"), "(0, 0)"),
    "get_device_name": '"CPU"',
    "get_rng_state": "None",
    "get_rng_state_all": "[]",
    "memory_stats": "{}",
    "memory_summary": '""',
}
_NEEDS_ONE = frozenset(
    {"Event", "Stream", "current_stream", "default_stream", "device", "device_of", "get_device_properties"}
)
_CONDITION = re.compile(r"(?i)cuda|gpu|device|accelerator|is_available")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if not site.target.is_portable or site.target.helper:
        return
    name = site.name.removeprefix(_CUDA)
    for submodule in _SUBMODULES:
        name = name.removeprefix(submodule)
    if name in _NEEDS_ONE:
        if not _is_conditional(site):
            yield site.remark(Kind.RISK, _NEEDED.format(name=name), site.node.func)
        return
    if not (_NOTHING.match(name) or name in _VALUES) or _is_conditional(site):
        return
    condition = f'{site.target.device.expression} != "cpu"'
    if name in _VALUES:
        value = _VALUES[name]
        after = site.module.insertion_after(site.node, f" if {condition} else {value})")
        yield site.change(_VALUED.format(value=value), _before(site, "("), after)
    elif isinstance(site.place.statement, ast.Expr) and site.place.statement.value is site.node:
        yield site.change(_SKIPPED, _before(site, f"{condition} and "))
    else:
        closing = site.module.insertion_after(site.node, ")")
        yield site.change(_SKIPPED, _before(site, f"({condition} and "), closing)


def _before(site: Site[ast.Call], text: str) -> Edit:
    """Text before the call; written over its first name, because a new line may have to go to the same place."""
    start = site.module.start(site.node)
    resolved = site.resolve(site.node.func)
    root = resolved.root if resolved else None
    if isinstance(root, ast.Name) and root.id == "torch":
        return Edit(start, start + len(root.id), text + root.id)
    return Edit(start, start, text)


def _is_conditional(site: Site[ast.Call]) -> bool:
    """Whether the call stands under a condition that asks for the device, however it asks."""
    for node in site.place.upwards():
        if isinstance(node, (ast.BoolOp, ast.IfExp)) and "is_available" in site.module.segment(node):
            return True
    position = site.module.start(site.node)
    for node in ast.walk(site.scope.node):
        if isinstance(node, ast.If) and site.module.start(node) < position < site.module.end(node):
            if _CONDITION.search(site.module.segment(node.test)):
                return True
    return False


RULE = Rule(
    id="TF111",
    name="no-accelerator",
    summary=Text(
        "Skips calls that need an accelerator on the CPU, in code for every device",
        "在通用代码中，于 CPU 上跳过需要加速卡的调用",
    ),
    triggers=("cuda",),
    nodes=(ast.Call,),
    check=_check,
    names=("torch.cuda.",),
)
