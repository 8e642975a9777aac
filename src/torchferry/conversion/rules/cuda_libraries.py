"""TF602: imports of libraries that only run on CUDA."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.conversion.target import with_advice
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.text import Text

_LIBRARY = Message(
    Text("`{library}` runs on CUDA only", "`{library}` 只能在 CUDA 上运行"),
    why=Text("Its kernels are written for NVIDIA GPUs.", "它的 kernel 是为 NVIDIA GPU 编写的。"),
)
_MONITOR = Message(
    Text("`{library}` reads NVIDIA's driver", "`{library}` 读取 NVIDIA 驱动"),
    why=Text("The target has no such driver, so the calls fail.", "目标没有该驱动，调用会失败。"),
    do=Text(
        "Skip the calls on the target, or read the output of `{smi}`.",
        "请在目标上跳过这些调用，或读取 `{smi}` 的输出。",
    ),
)

_LIBRARIES = (
    "triton", "flash_attn", "flash_attn_interface", "flash_attn_2_cuda", "xformers", "bitsandbytes",
    "nvidia.dali", "tensorrt", "torch_tensorrt", "torch2trt", "cupy", "cupyx", "numba.cuda", "pycuda",
    "skcuda", "cuda.cudart", "cuda.nvrtc", "cuda.bindings", "torch._C._nvtx", "cudf", "cuml",
    "transformer_engine", "deep_gemm", "amp_C", "fused_layer_norm_cuda", "causal_conv1d", "mamba_ssm",
    "spconv", "MinkowskiEngine", "torch_scatter", "torch_sparse", "torch_cluster",
)  # fmt: skip
_MONITORS = ("pynvml", "py3nvml", "nvidia_smi", "GPUtil", "gpustat", "nvitop")
_PACKAGES = tuple(sorted({name.partition(".")[0] for name in (*_LIBRARIES, *_MONITORS)} - {"torch"}))
# Words by which a library is found in strings; everything else about libraries starts from import statements.
_WORDS = ("bitsandbytes", "flash_attn", "xformers", "cupy", "pynvml", "tensorrt", "triton", "nvtx")
_IMPORTER = re.compile(
    r"(?i)import|find_spec|find_loader|is_package_available|requires?_backend|importorskip"
)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*\Z")


def library_of(qualified: str) -> str:
    """The CUDA-only library that a dotted name belongs to, "" if none."""
    libraries = (*_LIBRARIES, *_MONITORS)
    return next((library for library in libraries if f"{qualified}.".startswith(f"{library}.")), "")


def _rename(qualified: str, context: FileContext) -> Rename | None:
    library = library_of(qualified)
    if not library:
        return None
    return Rename(qualified, "", Kind.TODO, _message(library, qualified, context), once=True)


def _message(library: str, qualified: str, context: FileContext) -> Message:
    vendor = context.target.vendor
    if library in _MONITORS and vendor.smi:
        return _MONITOR.format(library=library, smi=vendor.smi)
    return with_advice(_LIBRARY.format(library=library), vendor, qualified)


def _check(site: Site[ast.Constant]) -> Iterator[Proposal]:
    """import_module("flash_attn"), or a class given by its dotted name"""
    value = text_of(site.node)
    if not _DOTTED.match(value) or isinstance(site.parent, (ast.JoinedStr, ast.Expr)):
        return
    library = library_of(value) or ("apex" if value.startswith("apex.") else "")
    if library and (_IMPORTER.search(called_name(site.parent)) or "." in value.removeprefix(library)):
        yield site.remark(Kind.TODO, _message(library, value, site.context))


RULE = Rule(
    id="TF602",
    name="cuda-libraries",
    summary=Text(
        "Reports libraries that run on CUDA only, with the vendor's equivalent",
        "报告只支持 CUDA 的库及厂商的替代方案",
    ),
    triggers=_WORDS,
    imports=_PACKAGES,
    roots=(*_PACKAGES, "torch"),
    nodes=(ast.Constant,),
    check=_check,
    rename=_rename,
)
