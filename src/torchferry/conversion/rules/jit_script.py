"""TF504: torch.jit.script where the vendor's adapter turns it off."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

_DISABLED = Message(
    Text("`torch.jit.script` has no effect on {company}", "`torch.jit.script` 在 {company} 上不起作用"),
    why=Text("{effect}.", "{effect}。"),
    do=Text(
        "Nothing, if eager mode is fast enough; otherwise try `torch.compile` with the vendor's backend.",
        "若 eager 模式速度足够则无需处理；否则请尝试使用厂商后端的 `torch.compile`。",
    ),
)
_NAMES = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.ScriptModule"})


def _rename(qualified: str, context: FileContext) -> Rename | None:
    vendor = context.target.vendor
    if qualified not in _NAMES or not vendor.jit_script:
        return None
    modules = (module.rpartition(".")[2].encode() for module in vendor.migrations)
    if vendor.jit_script_by_migration and not any(module in context.module.data for module in modules):
        return None  # converted code does without these modules
    message = _DISABLED.format(company=vendor.company_name, effect=phrase(vendor.jit_script))
    return Rename(qualified, "", Kind.RISK, message)


RULE = Rule(
    id="TF504",
    name="jit-script",
    summary=Text(
        "Reports `torch.jit.script` where the vendor's adapter turns it off",
        "报告被厂商适配层关闭的 `torch.jit.script`",
    ),
    triggers=("jit.script", "torch.jit"),
    tracks=frozenset({"torch.jit"}),
    roots=("torch",),
    rename=_rename,
    is_local=True,
    per_project=True,
)
