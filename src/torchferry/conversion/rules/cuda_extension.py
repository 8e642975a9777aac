"""TF601: extensions compiled from CUDA sources."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.site import FileContext
from torchferry.conversion.target import with_advice
from torchferry.finding import Kind
from torchferry.text import Text

_BUILDS = Text(
    "{name} compiles CUDA kernels, which must be written anew for {company}",
    "{name} 编译 CUDA 内核，需要为 {company} 重写",
)
_TOOLKIT = Text(
    "{name} is the place of the CUDA toolkit, which builds kernels that {company} can't run",
    "{name} 是 CUDA 工具包的位置，其构建的内核无法在 {company} 上运行",
)
_MODULE = "torch.utils.cpp_extension."
_BUILDERS = frozenset({"CUDAExtension", "load", "load_inline"})
_NAMES = frozenset({"CUDAExtension", "load", "load_inline", "CUDA_HOME", "CUDNN_HOME", "_find_cuda_home"})


def _rename(qualified: str, context: FileContext) -> Rename | None:
    name = qualified[len(_MODULE) :] if qualified.startswith(_MODULE) else ""
    if name not in _NAMES:
        return None
    vendor = context.target.vendor
    message = (_BUILDS if name in _BUILDERS else _TOOLKIT).format(name=name, company=vendor.company_name)
    return Rename(qualified, "", Kind.TODO, with_advice(message, vendor, f"{_MODULE}CUDAExtension"))


RULE = Rule(
    id="TF601",
    name="cuda-extension",
    summary=Text(
        "CUDAExtension, load and load_inline: kernels to be written anew",
        "CUDAExtension、load、load_inline：需重写的内核",
    ),
    triggers=("cpp_extension",),
    tracks=frozenset({"torch.utils.cpp_extension"}),
    roots=("torch",),
    rename=_rename,
)
