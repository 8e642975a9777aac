"""TF501: torch.profiler and the old autograd profiler, told which device to watch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.model import Support

_ACTIVITY = Text("Profiler changed to the target's device", "性能分析器改为观测目标设备")
_MODULE = Message(
    Text("Profiler of {company}: `{new}`", "{company} 的性能分析器：`{new}`"),
    why=Text(
        "The vendor has its own profiler, which sees the device.", "厂商有自己的性能分析器，可以观测设备。"
    ),
    do=Text("Use `{new}`, or run `ferry profile`.", "请使用 `{new}`，或运行 `ferry profile`。"),
)
_UNKNOWN = Message(
    Text("Profiler activity of {company} is unknown", "{company} 的 ProfilerActivity 名称未知"),
    why=Text("No public source names it.", "没有公开资料给出该名称。"),
    do=Text("Leave `activities` out, or ask the vendor.", "请省略 `activities`，或向厂商确认。"),
)
_PORTABLE = Message(
    Text("Profiler that watches CUDA only", "仅观测 CUDA 的性能分析器"),
    do=Text(
        "Leave `activities` out: torch watches every device that is there.",
        "请省略 `activities`：torch 会观测所有实际设备。",
    ),
)
_USE_DEVICE = Text("`use_cuda` changed to `use_device`", "`use_cuda` 改为 `use_device`")

_COLUMN = re.compile(r"(?:self_)?cuda_(?:time|memory)\w*\Z")
_COLUMN_NAME = Text("Profiler column renamed to `{new}`", "性能分析表的列改名为 `{new}`")
_TABLE = "key_averages"
_NO_TABLE = Message(
    Text("`key_averages()` with {company}'s profiler", "在 {company} 的性能分析器上调用 `key_averages()`"),
    why=Text("The vendor's profiler does not have it.", "厂商的性能分析器没有该方法。"),
    do=Text(
        "Read the trace instead (`ferry analyze`), or keep `torch.profiler`.",
        "请改为查看其 trace（`ferry analyze`），或保留 `torch.profiler`。",
    ),
)
_OWN_PROFILER = frozenset({"profile", "schedule", "tensorboard_trace_handler", "ProfilerActivity"})
_PROFILERS = frozenset(
    {"torch.autograd.profiler.profile", "torch.profiler.profile", "torch.autograd.profiler.record_function"}
)
_CUDA = "torch.profiler.ProfilerActivity.CUDA"


def _rename(qualified: str, context: FileContext) -> Rename | None:
    if not qualified.startswith("torch.profiler."):
        return None
    vendor = context.target.vendor
    if qualified == _CUDA:
        if context.target.is_portable:
            return Rename(_CUDA, "", Kind.TODO, _PORTABLE)
        api = vendor.api(_CUDA)
        if api.support is Support.RENAMED:
            return Rename(_CUDA, api.name, Kind.CHANGE, _ACTIVITY)
        return Rename(_CUDA, "", Kind.UNKNOWN, _UNKNOWN.format(company=vendor.company_name))
    name = qualified[len("torch.profiler.") :].partition(".")[0]
    if name not in _OWN_PROFILER or not _gets_own_profiler(context):
        return None
    new = f"{vendor.profiler_module}.{name}"
    message = _MODULE.format(company=vendor.company_name, new=new)
    return Rename(f"torch.profiler.{name}", new, Kind.CHANGE, message)


def _gets_own_profiler(context: FileContext) -> bool:
    """A module that watches no device keeps torch's profiler."""
    vendor = context.target.vendor
    has_own = vendor.profiler_module and vendor.profiler_module.partition(".")[0] == vendor.plugin
    return bool(has_own) and b"ProfilerActivity.CUDA" in context.module.data


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    if isinstance(site.node, ast.Call):
        # profile(use_cuda=flag) as profile(use_device=...)
        is_profiler = site.qualified(site.node.func) in _PROFILERS
        written = site.target.device.code
        for keyword in site.node.keywords if is_profiler else ():
            if keyword.arg == "use_cuda":
                new = f"{written} if {site.module.segment(keyword.value)} else None"
                if isinstance(keyword.value, ast.Constant):
                    new = written if keyword.value.value else "None"
                edit = site.module.replacement(keyword, f"use_device={new}")
                yield site.change(_USE_DEVICE, edit, node=keyword)
    elif isinstance(site.node, ast.Attribute) and site.node.attr == _TABLE:
        if _gets_own_profiler(site.context):
            yield site.remark(Kind.TODO, _NO_TABLE.format(company=site.target.vendor.company_name))
    else:
        old = site.node.attr if isinstance(site.node, ast.Attribute) else text_of(site.node)
        if _COLUMN.match(old):
            new = old.replace("cuda", "device")
            yield site.remark(Kind.TODO, _COLUMN_NAME.format(old=old, new=new))


RULE = Rule(
    id="TF501",
    name="profiler",
    summary=Text("Changes profilers to the target's device", "将性能分析器改为观测目标设备"),
    triggers=("torch.profiler", "use_cuda", _TABLE),
    roots=("torch",),
    tracks=frozenset({"torch.profiler"}),
    nodes=(ast.Call, ast.Attribute, ast.Constant),
    check=_check,
    rename=_rename,
    is_local=True,
)
