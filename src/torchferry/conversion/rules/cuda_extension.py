"""TF601: extensions compiled from CUDA sources."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.site import FileContext
from torchferry.conversion.target import with_advice
from torchferry.finding import Kind, Message, Severity
from torchferry.text import Text

_BUILDS = Message(
    Text("Custom CUDA kernels compiled by `{name}`", "由 `{name}` 编译的自定义 CUDA kernel"),
    why=Text("CUDA kernels do not run on {company}.", "CUDA kernel 不能在 {company} 上运行。"),
    do=Text(
        "Replace the operator by PyTorch operators or by one of the vendor's, or rewrite the kernel with the "
        "vendor's tools.",
        "请用 PyTorch 算子或厂商算子替换，或用厂商工具重写 kernel。",
    ),
    severity=Severity.BLOCKER,
)
_TOOLKIT = Message(
    Text("`{name}`: path of the CUDA toolkit", "`{name}`：CUDA 工具包的路径"),
    why=Text(
        "The toolkit builds kernels that {company} can't run.",
        "该工具包构建的 kernel 不能在 {company} 上运行。",
    ),
    do=Text(
        "Build these kernels only if CUDA is there, or replace them.",
        "请仅在有 CUDA 时构建这些 kernel，或将其替换。",
    ),
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
    if name in _BUILDERS:
        message = with_advice(message, vendor, f"{_MODULE}CUDAExtension")
    return Rename(qualified, "", Kind.TODO, message)


RULE = Rule(
    id="TF601",
    name="cuda-extension",
    summary=Text(
        "Reports custom kernels built by `CUDAExtension`, `load` and `load_inline`",
        "报告由 `CUDAExtension`、`load`、`load_inline` 构建的自定义 kernel",
    ),
    triggers=("cpp_extension",),
    tracks=frozenset({"torch.utils.cpp_extension"}),
    roots=("torch",),
    rename=_rename,
)
