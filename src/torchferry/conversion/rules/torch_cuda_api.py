"""TF102: every name under torch.cuda, by the target's API table."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.rules.nvidia_software import chooses_nvidia_software
from torchferry.conversion.site import FileContext
from torchferry.conversion.target import CLASS_METHODS, Target
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.model import Api, Support

RENAMED = Text("`{old}` renamed to `{new}`", "`{old}` 改名为 `{new}`")
_UNSUPPORTED = Message(
    Text("`{old}` has no equivalent on {company}", "{company} 没有与 `{old}` 等价的接口"),
    why=Text("The call fails on the target.", "该调用在目标上会失败。"),
    do=Text(
        "Remove the call, or guard it so that it runs on CUDA only.",
        "请删除该调用，或加判断使其只在 CUDA 上执行。",
    ),
)
_UNKNOWN = Message(
    Text("`{new}` may not exist", "`{new}` 可能不存在"),
    why=Text("No public source lists it.", "没有公开资料列出它。"),
    do=Text("Try it on the device.", "请在设备上验证。"),
)


def api_of(target: Target, qualified: str) -> tuple[str, Api]:
    """The longest part of a dotted name that the table knows, and its entry."""
    vendor = target.vendor
    parts = qualified.split(".")
    for length in range(len(parts), 2, -1):
        prefix = ".".join(parts[:length])
        api = vendor.apis.get(prefix)
        if api is None:
            continue
        if length == len(parts) or not any(other.startswith(f"{prefix}.") for other in vendor.apis):
            return prefix, api
        member = parts[length]  # which the table does not list, though its module
        if api.support is not Support.UNSUPPORTED:
            api = Api(Support.UNKNOWN, f"{api.name}.{member}")
        return f"{prefix}.{member}", api
    return _natural_name(target, parts)


def _natural_name(target: Target, parts: list[str]) -> tuple[str, Api]:
    """What no table entry covers: the module torch.cuda itself, or a name that we have never seen."""
    vendor = target.vendor
    prefix = ".".join(parts[:3])
    below = [api for name, api in vendor.apis.items() if name.startswith(prefix + ".")]
    if len(parts) > 2 and below and all(api.support is Support.UNSUPPORTED for api in below):
        return prefix, Api(Support.UNSUPPORTED, "")
    if len(parts) == 2 or below:
        return "torch.cuda", Api(Support.SAME, vendor.torch_module)
    return prefix, Api(target.unlisted_support, f"{target.unlisted_module}.{parts[2]}")


def _rename(qualified: str, context: FileContext) -> Rename | None:
    is_cuda = qualified == "torch.cuda" or qualified.startswith("torch.cuda.")
    if not is_cuda and qualified not in CLASS_METHODS:
        return None
    vendor = context.target.vendor
    old, api = api_of(context.target, qualified)
    if api.support is Support.UNSUPPORTED:
        return Rename(old, "", Kind.UNSUPPORTED, _UNSUPPORTED.format(company=vendor.company_name, old=old))
    remark = None
    if api.support is Support.UNKNOWN:
        remark = (Kind.UNKNOWN, _UNKNOWN.format(new=api.name))
    stays = chooses_nvidia_software if old == "torch.cuda.is_available" else None
    message = RENAMED.format(old=old, new=api.name)
    return Rename(old, api.name, Kind.CHANGE, message, remark, stays=stays)


RULE = Rule(
    id="TF102",
    name="torch-cuda-api",
    summary=Text(
        "Renames names under `torch.cuda` by the vendor's API table",
        "按厂商的 API 表替换 `torch.cuda` 下的名称",
    ),
    triggers=("cuda",),
    roots=("torch",),
    rename=_rename,
)
