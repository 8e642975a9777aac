"""Makes an ONNX graph simpler: constants folded, nodes without effect taken out."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import onnx

from torchferry.export.exporters import nodes, save
from torchferry.text import Text

_DONE = Text(
    "simplified by {tool}: {before} nodes became {after}", "已由 {tool} 简化：{before} 个节点变为 {after} 个"
)
_KEPT = Text(
    "{tool} made operators of its own of it, so it was left as it was", "{tool} 引入了自有算子，因此保留原图"
)


def simplified(model: onnx.ModelProto, folder: Path) -> tuple[onnx.ModelProto, Text]:
    """The simpler model, and by what; the same model where the tool would leave ONNX's operators."""
    tool, result = _by_tool(model, folder)
    used = {node.domain for node in nodes(result.graph)}
    if used - {"", "ai.onnx"}:
        return model, _KEPT.format(tool=tool)
    imports = [entry for entry in result.opset_import if entry.domain in ("", "ai.onnx")]
    del result.opset_import[:]
    result.opset_import.extend(imports)
    return result, _DONE.format(tool=tool, before=len(model.graph.node), after=len(result.graph.node))


def _by_tool(model: onnx.ModelProto, folder: Path) -> tuple[str, onnx.ModelProto]:
    for name, function in (("onnxslim", "slim"), ("onnxsim", "simplify")):
        if importlib.util.find_spec(name):
            made: Any = getattr(importlib.import_module(name), function)(model)
            return name, made[0] if isinstance(made, tuple) else made
    return "onnxruntime", _by_onnxruntime(model, folder)


def _by_onnxruntime(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    import onnxruntime

    before, after = folder / "before.onnx", folder / "after.onnx"
    save(model, before)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # The basic level keeps to ONNX's own operators.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(after)
    onnxruntime.InferenceSession(str(before), options, providers=["CPUExecutionProvider"])
    result = onnx.load(str(after))
    result.ir_version = model.ir_version
    return result
