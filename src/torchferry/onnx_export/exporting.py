"""Makes the model, fills it, exports it, checks the result and writes it; in the process of the user's model."""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import onnx
import torch

from torchferry.checkpoint.folders import read
from torchferry.checkpoint.loading import Loaded, NotPlainError, load_tree, refusal
from torchferry.checkpoint.model import Checkpoint
from torchferry.checkpoint.names import (
    StateDict,
    at,
    differences,
    fit,
    renamed_to_fit,
    state_dict_at,
    state_dicts,
)
from torchferry.errors import FerryError, InputError, RunError, not_writable
from torchferry.onnx_export.calls import Axes, ModelSignature, TensorForward, signature_of
from torchferry.onnx_export.checking import compare
from torchferry.onnx_export.exporters import OF_ONNX, Asked, export, nodes, save
from torchferry.onnx_export.launching import put
from torchferry.onnx_export.model import Exported, ExportRequest, Port, parse_dynamic
from torchferry.readiness.models.step import how_to_call_model, make_model, told_as
from torchferry.text import Text

# Makes an ONNX graph simpler: constants folded, nodes without effect taken out.

_DONE = Text(
    "simplified by {tool}: {before} nodes became {after}", "已由 {tool} 简化：{before} 个节点变为 {after} 个"
)
_KEPT = Text(
    "{tool} introduced its own operators, so the graph was left unchanged",
    "{tool} 引入了自有算子，因此保留原图",
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
    return "onnxruntime", result


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
    if not outputs:
        raise RunError(
            Text(
                "the model returns no tensor, so nothing can be exported; return one from forward()",
                "模型没有返回张量，无法导出；请让 forward() 返回张量",
            )
        )
    if request.output_names and len(request.output_names) != len(outputs):
        raise RunError(
            Text(
                f"--output-names: {len(request.output_names)} names for {len(outputs)} outputs; give one name for "
                "each",
                f"--output-names：{len(outputs)} 个输出对应了 {len(request.output_names)} 个名称；请一一对应",
            )
        )
    names = request.output_names or called.output_names
    twice = sorted(name for name, count in Counter((*signature.names, *names)).items() if count > 1)
    if twice:  # in ONNX inputs and outputs share their names' space
        raise RunError(
            Text(
                f"{', '.join(twice)}: used for two inputs or outputs; choose other names with --input-names or "
                "--output-names",
                f"{', '.join(twice)}：被两个输入或输出同时使用；请用 --input-names 或 --output-names 另选名称",
            )
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
    request: ExportRequest, made: onnx.ModelProto, way: str, asked: Asked, notes: list[Text], folder: Path
) -> Exported:
    output = Path(request.output)
    place = folder / "made"
    try:
        place.mkdir()
        file = save(made, place / output.name)
    except OSError as error:
        raise not_writable(output, error) from None
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


# The weights of a checkpoint; what does not fit is said name by name.

_TOOK = Text("weights: {name} of {path}, {count} tensors", "权重：{path} 的 {name}，{count} 个张量")
_WHOLE = Text("all", "全部内容")
_ALSO = Text("the file also contains {names}; choose with --part", "文件中还有 {names}；可用 --part 选择")
_STRIPPED = Text("the prefix {prefix} of all names was removed", "所有名称均以 {prefix} 开头，已去掉")
_UNWRAPPED = Text("wrappers inside {count} names were removed", "已去掉 {count} 个名称中的包装层")
_LENIENT = Text(
    "{missing} weights are not in the file and keep their initial values; {unexpected} weights of "
    "the file were not used; {misshapen} had another shape",
    "文件中缺少 {missing} 个权重，保持模型初始值；文件中有 {unexpected} 个未使用；{misshapen} 个形状不符",
)
_RAN = Text(
    "code named in the file was run, as allowed by --allow-pickle", "已按 --allow-pickle 执行了文件引用的代码"
)

_MISMATCH = Text(
    "{path}: does not match {model}: {missing} names missing, {unexpected} not in the model, {misshapen} with another "
    "shape; check --model and --init, choose a part with --part, or use only what matches with --lenient",
    "{path}：与 {model} 不符：缺少 {missing} 个名称，{unexpected} 个不在模型中，{misshapen} 个形状不符；请检查 --model 和 "
    "--init，用 --part 选择一部分，或用 --lenient 只使用相符的权重",
)


class WeightsMismatchError(FerryError):
    """A checkpoint whose names or shapes are not the model's: a line for each."""


def fill(model: torch.nn.Module, request: ExportRequest) -> list[Text]:
    """Load the checkpoint into the model; the answer is what there is to say about it."""
    path = Path(request.checkpoint)
    contents = read(path)
    state, said = _chosen(contents, request.only)
    weights, ran_code = _loaded(contents, state, request)
    said += [_RAN] if ran_code else []
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    renaming = renamed_to_fit(weights, wanted)
    said += [_STRIPPED.format(prefix=renaming.stripped)] if renaming.stripped else []
    said += [_UNWRAPPED.format(count=renaming.unwrapped)] if renaming.unwrapped else []
    weights = {renaming.names[name]: tensor for name, tensor in weights.items()}
    found = fit({name: tuple(tensor.shape) for name, tensor in weights.items()}, wanted)
    if not found.is_whole:
        if not request.lenient:
            summary = _MISMATCH.format(
                path=path,
                model=request.model.factory,
                missing=len(found.missing),
                unexpected=len(found.unexpected),
                misshapen=len(found.misshapen),
            )
            raise WeightsMismatchError(summary, *differences(found))
        said.append(
            _LENIENT.format(
                missing=len(found.missing), unexpected=len(found.unexpected), misshapen=len(found.misshapen)
            )
        )
        odd = {*found.unexpected, *(name for name, _, _ in found.misshapen)}
        weights = {name: tensor for name, tensor in weights.items() if name not in odd}
    # Some layers read weights of another version differently; where the file does not say, it is the model's own.
    whole: Any = OrderedDict(weights)
    whole._metadata = getattr(model.state_dict(), "_metadata", {})
    if isinstance(state.metadata, dict):
        whole._metadata = {
            renaming.of_module(str(name)): dict(version)
            for name, version in state.metadata.items()
            if isinstance(version, dict)
        }
    model.load_state_dict(whole, strict=False)
    return said


def _chosen(contents: Checkpoint, only: str) -> tuple[StateDict, list[Text]]:
    if only:
        state = state_dict_at(tuple(only.split(".")), at(contents.tree, only))
        others: list[str] = []
    else:
        states = state_dicts(contents.tree)
        if not states:
            raise InputError(
                Text(
                    f"{contents.path}: holds no weights; `ferry checkpoint info` lists what it holds",
                    f"{contents.path}：没有权重；`ferry checkpoint info` 可列出其内容",
                )
            )
        state, others = states[0], [each.name for each in states[1:]]
    name = Text(state.name, state.name) if state.path else _WHOLE
    said = [_TOOK.format(name=name, path=contents.path, count=len(state.tensors))]
    return state, said + ([_ALSO.format(names=", ".join(others))] if others else [])


def _loaded(
    contents: Checkpoint, state: StateDict, request: ExportRequest
) -> tuple[dict[str, torch.Tensor], bool]:
    try:
        return Loaded(contents).tensors(state.tensors), False
    except NotPlainError as problem:
        if not request.allow_pickle:
            raise refusal(contents, problem) from None
    whole, _, ran_code = load_tree(contents, True)
    found: Any = at(whole, state.name) if state.path else whole
    if isinstance(found, torch.nn.Module):
        return dict(found.state_dict()), ran_code
    return {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}, ran_code
