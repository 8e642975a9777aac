"""TF110: CUDA names inside torch that belong to no public module: torch._C._cuda_*, emit_nvtx."""

from __future__ import annotations

import re

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.text import Text

_INTERNAL = Message(
    Text("Internal name of CUDA builds: `{old}`", "CUDA 版 torch 的内部名称：`{old}`"),
    why=Text("Only a CUDA build of torch has it.", "只有 CUDA 版 torch 才有它。"),
    do=Text("Use the public function of `{module}` that does this.", "请改用 `{module}` 中的公开函数。"),
)
_NAMES = re.compile(r"torch\._C\.\w*(?:cuda|Cuda|nvtx|cudnn|nccl)\w*|torch\.autograd\.profiler\.emit_nvtx")


def _rename(qualified: str, context: FileContext) -> Rename | None:
    match = _NAMES.match(qualified)
    if match is None:
        return None
    message = _INTERNAL.format(old=match.group(), module=context.target.vendor.torch_module)
    return Rename(match.group(), "", Kind.TODO, message)


RULE = Rule(
    id="TF110",
    name="torch-internals",
    summary=Text("Reports internal CUDA names of torch", "报告 torch 内部的 CUDA 名称"),
    triggers=("cuda", "nvtx"),
    roots=("torch",),
    rename=_rename,
)
