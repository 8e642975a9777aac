"""TF605: PaddlePaddle programs, which are not converted: their imports, and the places that name a GPU."""

from __future__ import annotations

import re

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message, Severity
from torchferry.text import Text

_PROGRAM = Message(
    Text("PaddlePaddle program, not converted", "PaddlePaddle 程序，未转换"),
    why=Text("TorchFerry converts PyTorch only.", "TorchFerry 只转换 PyTorch。"),
    do=Text(
        "Use {company}'s plugin for Paddle (PaddleCustomDevice) and its device names.",
        "请使用 {company} 的 Paddle 插件（PaddleCustomDevice）和相应的设备名称。",
    ),
    severity=Severity.BLOCKER,
)
_PLACE = Message(
    Text("Call that chooses Paddle's GPU: `{name}`", "选择 Paddle GPU 的调用：`{name}`"),
    why=Text("PaddlePaddle programs are not converted.", "PaddlePaddle 程序不会被转换。"),
    do=Text("Change the device by hand.", "请手动修改设备。"),
)
LINE = Message(
    Text("Command or setting of a PaddlePaddle program on GPUs", "在 GPU 上启动或配置 PaddlePaddle 程序"),
    why=Text("PaddlePaddle programs are not converted.", "PaddlePaddle 程序不会被转换。"),
    do=Text("Change the device by hand.", "请手动修改设备。"),
)
_GPU = re.compile(
    r"paddle(?:\.\w+)*\.(?:set_device|get_device|CUDAPlace|CUDAPinnedPlace|is_compiled_with_cuda|cuda_places|"
    r"DataParallel|init_parallel_env|auto_cast|GradScaler|spawn)\Z|paddle\.device\.cuda\b|paddle\.Tensor\.cuda\Z"
)
# What scripts and configurations of Paddle hold: its launcher, and settings that no PyTorch program knows.
IN_TEXTS = re.compile(r"paddle\.distributed\.launch|\bGlobal\.(?:device|use_gpu)=\w+")


def _rename(qualified: str, context: FileContext) -> Rename | None:
    if qualified.partition(".")[0] not in ("paddle", "paddlenlp", "paddleseg", "paddledet", "ppdet"):
        return None
    if _GPU.match(qualified):
        return Rename(qualified, "", Kind.TODO, _PLACE.format(name=qualified))
    message = _PROGRAM.format(company=context.target.vendor.company_name)
    return Rename(qualified, "", Kind.TODO, message, once=True)


RULE = Rule(
    id="TF605",
    name="paddle",
    summary=Text(
        "Reports PaddlePaddle programs, which are not converted", "报告不予转换的 PaddlePaddle 程序"
    ),
    triggers=("paddle",),
    imports=("paddle", "paddlenlp", "paddleseg", "paddledet", "ppdet"),
    roots=("paddle", "paddlenlp", "paddleseg", "paddledet", "ppdet"),
    rename=_rename,
)
