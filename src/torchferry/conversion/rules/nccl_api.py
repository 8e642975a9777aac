"""TF202: torch.distributed names that exist for NCCL only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

_ASKED = Text("Test for the target's communication backend", "查询目标的通信后端")
_CLASS = Message(
    Text("Process group class of NCCL: `{old}`", "NCCL 专用的进程组类：`{old}`"),
    why=Text("The class exists in CUDA builds only.", "该类只存在于 CUDA 构建中。"),
    do=Text(
        "Use the functions of `torch.distributed`, or {company}'s class.",
        "请使用 `torch.distributed` 的函数，或 {company} 的对应类。",
    ),
)
_AVAILABLE = frozenset(
    {"torch.distributed.is_nccl_available", "torch.distributed.distributed_c10d.is_nccl_available"}
)


# A backend that registers itself gets an attribute of its name in upper case.
_BACKEND_NAMES = frozenset(
    {"torch.distributed.Backend.NCCL", "torch.distributed.distributed_c10d.Backend.NCCL"}
)


def _rename(qualified: str, context: FileContext) -> Rename | None:
    if not qualified.startswith(("torch.distributed.", "torch._C._distributed_c10d.")):
        return None
    if qualified in _AVAILABLE and context.target.backend.code:
        new = qualified.replace("is_nccl_available", "is_backend_available")
        return Rename(qualified, new, Kind.CHANGE, _ASKED)
    if qualified in _BACKEND_NAMES and context.target.backend.word:
        new = qualified.replace("NCCL", context.target.backend.word.upper())
        return Rename(qualified, new, Kind.CHANGE, _ASKED)
    if qualified in _BACKEND_NAMES or "ProcessGroupNCCL" in qualified or "_nccl" in qualified:
        company = context.target.vendor.company_name
        return Rename(qualified, "", Kind.TODO, _CLASS.format(old=qualified, company=company))
    return None


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    """The general question needs to be told which backend it is about."""
    if site.qualified(site.node.func) not in _AVAILABLE or site.node.args or not site.target.backend.code:
        return
    closing = site.module.end(site.node) - 1
    yield site.change(_ASKED, Edit(closing, closing, site.target.backend.code))


RULE = Rule(
    id="TF202",
    name="nccl-api",
    summary=Text(
        "Changes `is_nccl_available()` and reports classes of NCCL",
        "修改 `is_nccl_available()`，并报告 NCCL 专用的类",
    ),
    triggers=("nccl", "NCCL"),
    roots=("torch",),
    nodes=(ast.Call,),
    check=_check,
    names=("torch.distributed.",),
    rename=_rename,
)
