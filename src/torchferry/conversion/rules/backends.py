"""TF107: torch.backends.cuda and torch.backends.cudnn: flags that mean nothing elsewhere, functions that are missing."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.rules.torch_cuda_api import RENAMED
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.model import Support

_FLAG = Message(
    Text("Setting of a CUDA library: `{old}`", "CUDA 库的设置：`{old}`"),
    why=Text(
        "It can stay. It has no effect on {company} unless its adapter reads it.",
        "可以保留。除非 {company} 的适配层读取它，否则不起作用。",
    ),
)
_PORTABLE = Message(
    Text("Setting of a CUDA library: `{old}`", "CUDA 库的设置：`{old}`"),
    why=Text("It has no effect on other devices.", "在其他设备上不起作用。"),
)
_SIMILAR = Message(
    Text("Setting of cuDNN: `{old}`", "cuDNN 的设置：`{old}`"),
    why=Text(
        "It can stay. The closest setting of {company} is {new}.",
        "可以保留。{company} 最接近的设置是 {new}。",
    ),
)
_LISTED = Message(
    Text("`{old}` is supported", "`{old}` 受支持"),
    why=Text("{company} lists it as supported, so it can stay.", "{company} 标明支持，可以保留。"),
)
_MISSING = Message(
    Text("`{old}` does not work on {company}", "`{old}` 在 {company} 上不可用"),
    why=Text("The call raises an error on the target.", "该调用在目标上会报错。"),
    do=Text("Guard it so that it runs on CUDA only.", "请加判断使其只在 CUDA 上执行。"),
)
_UNKNOWN = Message(
    Text("`{old}` may not work on {company}", "`{old}` 在 {company} 上可能不可用"),
    why=Text("No public source says whether it works.", "没有公开资料说明是否可用。"),
    do=Text("Try it on the device.", "请在设备上验证。"),
)

_MODULES = ("torch.backends.cudnn", "torch.backends.cuda", "torch.backends.cuda.matmul")
_FLAGS = (
    "torch.backends.cudnn.",
    "torch.backends.cuda.matmul.",
    # choices among CUDA's kernels: they set a flag, and run everywhere
    "torch.backends.cuda.enable_",
    "torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp",
    "torch.backends.cuda.sdp_kernel",
    "torch.backends.cuda.preferred_",
)


def _rename(qualified: str, context: FileContext) -> Rename | None:
    if not qualified.startswith("torch.backends.cud") or qualified in _MODULES:
        return None
    vendor = context.target.vendor
    if context.target.is_portable:
        return Rename(qualified, "", Kind.INFO, _PORTABLE.format(old=qualified))
    words = {"old": qualified, "company": vendor.company_name}
    api = vendor.api(qualified)
    if api.support is Support.RENAMED and qualified.startswith("torch.backends.cudnn."):
        return Rename(qualified, "", Kind.INFO, _SIMILAR.format(new=api.name, **words))
    if api.support is Support.RENAMED:
        return Rename(qualified, api.name, Kind.CHANGE, RENAMED.format(old=qualified, new=api.name))
    if api.support is Support.SAME:
        return Rename(qualified, "", Kind.INFO, _LISTED.format(**words))
    if qualified.startswith(_FLAGS):
        return Rename(qualified, "", Kind.INFO, _FLAG.format(**words))
    if api.support is Support.UNSUPPORTED:
        return Rename(qualified, "", Kind.UNSUPPORTED, _MISSING.format(**words))
    return Rename(qualified, "", Kind.UNKNOWN, _UNKNOWN.format(**words))


RULE = Rule(
    id="TF107",
    name="cuda-backends",
    summary=Text(
        "Keeps harmless settings under `torch.backends` and reports functions that the target lacks",
        "保留 `torch.backends` 下无害的设置，报告目标没有的函数",
    ),
    triggers=("cudnn", "backends.cuda"),
    roots=("torch",),
    rename=_rename,
)
