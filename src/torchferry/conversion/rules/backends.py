"""TF107: torch.backends.cuda and torch.backends.cudnn: flags that mean nothing elsewhere, functions that are missing."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.rules.torch_cuda_api import RENAMED
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind
from torchferry.text import Text
from torchferry.vendors.model import Support

_FLAG = Text(
    "{old} belongs to CUDA libraries: it can stay, and has no effect on {company} unless its adapter reads it",
    "{old} 属于 CUDA 库：可以保留，除非 {company} 的适配层读取它，否则不起作用",
)
_PORTABLE = Text(
    "{old} belongs to CUDA libraries: it has no effect elsewhere", "{old} 属于 CUDA 库：在其他设备上不起作用"
)
_SIMILAR = Text(
    "{old} is about cuDNN and can stay; the nearest thing of {company}'s is {new}",
    "{old} 针对 cuDNN，可以保留；{company} 最接近的是 {new}",
)
_LISTED = Text("{company} lists {old} as supported; it can stay", "{company} 标明支持 {old}，可以保留")
_MISSING = Text(
    "{old} does not work on {company}; guard it so that it only runs on CUDA",
    "{old} 在 {company} 上不可用；请加判断使其只在 CUDA 上执行",
)
_UNKNOWN = Text(
    "nothing public says whether {old} works on {company}", "没有公开资料说明 {old} 在 {company} 上是否可用"
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
        "settings of CUDA libraries under torch.backends: kept where harmless, reported where missing",
        "torch.backends 下的 CUDA 库设置：无害的保留，缺失的报告",
    ),
    triggers=("cudnn", "backends.cuda"),
    roots=("torch",),
    rename=_rename,
)
