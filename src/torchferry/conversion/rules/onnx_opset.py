"""TF606: torch.onnx.export with an opset that today's exporter does not write."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text

_OPSET = Message(
    Text("ONNX export with an old opset", "使用旧 opset 导出 ONNX"),
    why=Text(
        "PyTorch 2.9 and newer export opset {lowest} and convert down only if they can.",
        "PyTorch 2.9 及以上导出 opset {lowest}，只有在可能时才向下转换。",
    ),
    do=Text(
        "Pass `dynamo=False`, or use `ferry export`, which checks the vendor's opset.",
        "请加上 `dynamo=False`，或使用会检查厂商所需 opset 的 `ferry export`。",
    ),
)
_LOWEST = 18  # what the exporter of PyTorch 2.9 writes before it converts


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if site.name != "torch.onnx.export":
        return
    given = {item.arg: item.value for item in site.node.keywords}
    opset = given.get("opset_version")
    if "dynamo" in given or None in given or not isinstance(opset, ast.Constant):
        return
    if isinstance(opset.value, int) and opset.value < _LOWEST:
        yield site.remark(Kind.RISK, _OPSET.format(lowest=_LOWEST), opset)


RULE = Rule(
    id="TF606",
    name="onnx-opset",
    summary=Text(
        "Reports `torch.onnx.export` with an opset that the current exporter does not write",
        "报告指定了当前导出器不直接生成的 opset 的 `torch.onnx.export`",
    ),
    triggers=("onnx",),
    tracks=frozenset({"torch.onnx.export"}),
    nodes=(ast.Call,),
    check=_check,
    names=("torch.onnx.",),
)
