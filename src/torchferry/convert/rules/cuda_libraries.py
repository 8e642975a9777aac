"""TF602: imports of libraries that only run on CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.replacements import with_advice
from torchferry.convert.rule import Proposal, Rename, Rule, register
from torchferry.convert.site import FileContext, Site
from torchferry.finding import Kind
from torchferry.text import Text

_LIBRARY = Text("{library} runs on CUDA only", "{library} 只能在 CUDA 上运行")
_MONITOR = Text(
    "{library} reads NVIDIA's driver; the target's command is `{smi}`",
    "{library} 读取 NVIDIA 驱动；目标设备的命令是 `{smi}`",
)

_LIBRARIES = (
    "triton",
    "flash_attn",
    "flash_attn_interface",
    "flash_attn_2_cuda",
    "xformers",
    "bitsandbytes",
    "nvidia.dali",
    "tensorrt",
    "torch_tensorrt",
    "torch2trt",
    "cupy",
    "cupyx",
    "numba.cuda",
    "pycuda",
    "skcuda",
    "cudf",
    "cuml",
    "transformer_engine",
    "deep_gemm",
    "amp_C",
    "fused_layer_norm_cuda",
    "causal_conv1d",
    "mamba_ssm",
    "spconv",
    "MinkowskiEngine",
    "torch_scatter",
    "torch_sparse",
    "torch_cluster",
)
_MONITORS = ("pynvml", "py3nvml", "nvidia_smi", "GPUtil", "gpustat", "nvitop")
_BY_STRING = frozenset({"import_module", "find_spec", "__import__", "find_loader"})


def library_of(qualified: str) -> str:
    """The CUDA-only library that a dotted name belongs to, "" if none."""
    for library in (*_LIBRARIES, *_MONITORS):
        if qualified == library or qualified.startswith(library + "."):
            return library
    return ""


def _rename(qualified: str, context: FileContext) -> Rename | None:
    library = library_of(qualified)
    if not library:
        return None
    return Rename(qualified, "", Kind.TODO, _message(library, qualified, context), once=True)


def _message(library: str, qualified: str, context: FileContext) -> Text:
    vendor = context.target.vendor
    if library in _MONITORS and vendor.smi:
        return _MONITOR.format(library=library, smi=vendor.smi)
    return with_advice(_LIBRARY.format(library=library), vendor, qualified)


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    """importlib.import_module("flash_attn")"""
    function = site.node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in _BY_STRING or not site.node.args:
        return
    argument = site.node.args[0]
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and library_of(argument.value):
        message = _message(library_of(argument.value), argument.value, site.context)
        yield site.remark(Kind.TODO, message)


RULE = register(
    Rule(
        id="TF602",
        name="cuda-libraries",
        summary=Text(
            "imports of CUDA-only libraries, with the vendor's equivalent",
            "只支持 CUDA 的库，及厂商的替代方案",
        ),
        triggers=("import_module", "find_spec", "__import__"),
        imports=tuple(sorted({name.partition(".")[0] for name in (*_LIBRARIES, *_MONITORS)})),
        roots=tuple(sorted({name.partition(".")[0] for name in (*_LIBRARIES, *_MONITORS)})),
        nodes=(ast.Call,),
        check=_check,
        rename=_rename,
    )
)
