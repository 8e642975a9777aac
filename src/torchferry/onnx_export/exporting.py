"""Makes the model, fills it, exports it, checks the result and writes it; in the process of the user's model."""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import torch

from torchferry.errors import OutputError, RunError
from torchferry.onnx_export.calls import Axes, ModelSignature, TensorForward, signature_of
from torchferry.onnx_export.checking import compare
from torchferry.onnx_export.exporters import OF_ONNX, Asked, export, nodes, save
from torchferry.onnx_export.launching import put
from torchferry.onnx_export.model import Exported, ExportRequest, Port, parse_dynamic
from torchferry.onnx_export.weights import fill
from torchferry.readiness.models.making import how_to_call_model, make_model, told_as
from torchferry.text import Text

# Makes an ONNX graph simpler: constants folded, nodes without effect taken out.

_DONE = Text(
    "simplified by {tool}: {before} nodes became {after}", "已由 {tool} 简化：{before} 个节点变为 {after} 个"
)
_KEPT = Text(
    "{tool} made operators of its own of it, so it was left as it was", "{tool} 引入了自有算子，因此保留原图"
)


def simplified(model: onnx.ModelProto, folder: Path) -> tuple[onnx.ModelProto, Text]:
    """The simpler model, and by what; the same model where the tool would leave ONNX's operators."""
    tool, result = _by_tool(model, folder)
    if any(node.domain not in OF_ONNX for node in nodes(result.graph)):
        return model, _KEPT.format(tool=tool)
    imports = [entry for entry in result.opset_import if entry.domain in OF_ONNX]
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


def export_here(request: ExportRequest, folder: Path) -> Exported:
    """All of it, by files in this folder, which lies where the result will; that is put there last, whole or not at all."""
    model = make_model(request.model)
    notes = fill(model, request) if request.checkpoint else []
    model.requires_grad_(False)
    signature = signature_of(model, request.model.inputs, request.input_names, parse_dynamic(request.dynamic))
    called = TensorForward(model, signature).eval()
    tensors = signature.draw({}, 0)
    with told_as("the forward pass", how_to_call_model(model)), torch.no_grad():
        outputs = called(*tensors)
    names = _output_names(request, called, len(outputs))
    twice = sorted(name for name, count in Counter((*signature.names, *names)).items() if count > 1)
    if twice:  # in ONNX inputs and outputs share their names' space
        raise RunError(
            f"{', '.join(twice)}: the name of two inputs or outputs; choose others with --input-names or --output-names"
        )
    axes = _output_axes(called, signature, names, outputs)
    (folder / "ways").mkdir()
    # A free size of 1 would be taken for one that is always 1.
    example = signature.draw({symbol: max(size, 2) for symbol, size in signature.given_sizes().items()}, 0)
    asked = Asked(called, signature, example, names, axes, request.opset, folder / "ways")
    made, way = export(asked)
    if request.simplify:
        made, said = simplified(made, folder / "ways")
        notes = [*notes, said]
    return _checked_and_written(request, made, way, asked, notes, folder)


def _output_names(request: ExportRequest, called: TensorForward, count: int) -> tuple[str, ...]:
    if not count:
        raise RunError("the model gives no tensor; nothing can be exported")
    if request.output_names and len(request.output_names) != count:
        raise RunError(f"--output-names: {len(request.output_names)} names for {count} outputs")
    return request.output_names or called.output_names


def _output_axes(
    called: TensorForward,
    signature: ModelSignature,
    names: tuple[str, ...],
    outputs: tuple[torch.Tensor, ...],
) -> Axes:
    """Which sizes of the outputs change with which of the inputs: found out by changing them."""
    axes: Axes = {}
    for symbol, size in signature.given_sizes().items():
        tensors = signature.draw({symbol: size + 1 if size == 1 else size * 2}, 0)
        with told_as(f"--dynamic {symbol}: the forward pass with another size"), torch.no_grad():
            others = called(*tensors)
        for name, before, after in zip(names, outputs, others, strict=True):
            for axis, (old, new) in enumerate(zip(before.shape, after.shape, strict=True)):
                if old != new:
                    axes.setdefault(name, {}).setdefault(axis, symbol)
    return axes


def _checked_and_written(
    request: ExportRequest,
    made: onnx.ModelProto,
    way: str,
    asked: Asked,
    notes: list[Text],
    folder: Path,
) -> Exported:
    output = Path(request.output)
    place = folder / "made"
    try:
        place.mkdir()
        file = save(made, place / output.name)
    except OSError as error:
        raise OutputError(f"{output}: can't be written ({error.strerror or error})") from None
    checks, skipped = compare(file, asked.called, asked.signature, request.batches, request.tolerance)
    size = sum(each.stat().st_size for each in place.iterdir())
    put(
        file, folder.parent / output.name, request.replace
    )  # a model's code may have changed the current folder
    operators = Counter(node.op_type for node in nodes(made.graph))
    return Exported(
        str(output),
        request.opset,
        way,
        size,
        tuple(map(_port, made.graph.input)),
        tuple(map(_port, made.graph.output)),
        tuple(checks),
        dict(operators.most_common()),
        (*notes, *skipped),
    )


def _port(value: onnx.ValueInfoProto) -> Port:
    tensor = value.type.tensor_type
    dtype = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    shape = tuple(size.dim_param or str(size.dim_value) for size in tensor.shape.dim)
    return Port(value.name, {"float": "float32", "double": "float64"}.get(dtype, dtype), shape)
