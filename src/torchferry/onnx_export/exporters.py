"""The ways from a PyTorch model to ONNX of a certain opset, tried in turn.

PyTorch has two exporters. The one over TorchScript writes every opset from 7 to 20, but not every operator in the old
ones; the one over torch.export writes 18 and later only, and where it is asked for less it may write more without a
word. So: TorchScript; then TorchScript with formulas for what ONNX lacks; then torch.export, which takes operators apart,
before TorchScript; then the new exporter, and ONNX's own converter down to what is asked for. A result counts only if its opset is the one that was asked for, and if it has no
operators but ONNX's.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import onnx
import torch

import torchferry
from torchferry.errors import RunError
from torchferry.onnx_export.calls import Axes, ModelSignature, TensorForward
from torchferry.onnx_export.formulas import formulas
from torchferry.onnx_export.launching import DATA
from torchferry.text import NOTHING, Text

# Finds in a user's model the operator that an exporter has stopped at: the layer, and the line of its file.

_OPERATOR = re.compile(r"operator '?(?:aten::)?(\w+)|'?aten::(\w+)")
_SINCE = re.compile(r"added in version (\d+)")
_LINE = re.compile(r"^\s*(\S.*?\.py)\((\d+)\):", re.MULTILINE)
_NOT_THE_USERS = tuple(
    os.path.join(os.path.dirname(package.__file__ or ""), "") for package in (torch, torchferry)
)


def obstacle(said: Sequence[str], called: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> Text | None:
    """The operator that the exporters name, with its place; None: none of them names one."""
    found = next(filter(None, map(_OPERATOR.search, said)), None)
    if found is None:
        return None
    name = found[1] or found[2]
    since = next(filter(None, map(_SINCE.search, said)), None)
    place = _place(name, called, tensors)
    newer = (
        Text(f", which ONNX has from opset {since[1]} on", f"（ONNX 自 opset {since[1]} 起支持）")
        if since
        else NOTHING
    )
    return Text(f"aten::{name}{place}{newer.en}", f"aten::{name}{place}{newer.zh}")


def _place(name: str, called: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> str:
    try:
        trace: Any = torch.jit.trace
        graph = trace(called, tensors, check_trace=False).inlined_graph
    except Exception:  # whatever a user's model raises while it is traced
        return ""
    node = next((node for node in graph.nodes() if node.kind() == f"aten::{name}"), None)
    if node is None:
        return ""
    layer = node.scopeName().split("/")[-1].removeprefix("__module.").removeprefix("model").strip(".")
    lines = [
        f"{file.removeprefix(os.getcwd() + os.sep)}:{line}"
        for file, line in _LINE.findall(node.sourceRange())
        if not file.startswith(_NOT_THE_USERS)
    ]
    return (f" in {layer}" if layer else "") + (f" ({lines[0]})" if lines else "")


# A model in fewer operators: PyTorch's own decompositions for those that the exporter over TorchScript can't write.

_REGISTRIES = (  # where PyTorch keeps what its exporter over TorchScript can write, newest first
    "torch.onnx._internal.torchscript_exporter.registration",
    "torch.onnx._internal.registration",
)
_ASSERTIONS = ("_guards_fn", "_assert", "sym_constrain")


def lowered(
    called: torch.nn.Module, tensors: tuple[torch.Tensor, ...], dynamic_shapes: Any, opset: int
) -> torch.nn.Module:
    """The same function by torch.export, with every operator taken apart that the opset lacks."""
    program = torch.export.export(called, tensors, dynamic_shapes=dynamic_shapes, strict=False)
    graph_module: Any = program.run_decompositions(_decompositions(opset)).module()
    # What decompositions end in, as functions that the exporter over TorchScript can write.
    prims = torch.ops.prims
    plain = {
        torch.ops.aten.sym_size.int: _size,
        prims.convert_element_type.default: lambda tensor, dtype: tensor.to(dtype),
        prims.expm1.default: lambda tensor: torch.exp(tensor) - 1,
        prims.trunc.default: lambda tensor: torch.sign(tensor) * torch.floor(torch.abs(tensor)),
        prims.hypot.default: lambda left, right: torch.sqrt(left * left + right * right),
        prims.prod.default: _product,
    }
    for node in list(graph_module.graph.nodes):
        if not node.users and any(word in str(node.target) for word in _ASSERTIONS):
            graph_module.graph.erase_node(node)
        elif node.target in plain:
            node.target = plain[node.target]
        elif _takes_free_sizes(node):
            # The function as programs call it: unlike the operator it takes sizes that a trace keeps.
            name = node.target.overloadpacket.__name__
            node.target = getattr(torch, name, None) or getattr(torch.Tensor, name, node.target)
    graph_module.recompile()
    return _Fixed(graph_module)


class _Fixed(torch.nn.Module):
    """What torch.export makes refuses to change between training and inference, which exporters ask for."""

    def __init__(self, graph_module: torch.nn.Module) -> None:
        super().__init__()
        self.inner = graph_module

    def train(self, mode: bool = True) -> _Fixed:
        self.training = mode
        return self

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.inner(*tensors)


def _size(tensor: torch.Tensor, axis: int) -> Any:
    """A size that a trace keeps as one; torch.export's own operator gives it a number."""
    return tensor.shape[axis]


def _takes_free_sizes(node: Any) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and any(
        isinstance(each.meta.get("val"), torch.SymInt) for each in node.all_input_nodes
    )


def _product(tensor: torch.Tensor, axes: Sequence[int], *, output_dtype: Any = None) -> torch.Tensor:
    for axis in sorted(axes, reverse=True):
        tensor = tensor.prod(axis)
    return tensor


def _decompositions(opset: int) -> dict[Any, Any]:
    whole = {**torch.export.default_decompositions(), **torch._decomp.decomposition_table}
    registry = _registry()
    return {
        operator: how
        for operator, how in whole.items()
        if not registry.is_registered_op(getattr(operator, "_schema", operator).name, opset)
    }


def _registry() -> Any:
    for name in _REGISTRIES:
        try:
            return importlib.import_module(name).registry
        except (ImportError, AttributeError):
            continue
    raise RuntimeError("this PyTorch does not say which operators it can write")


# Bytes of weights; one protocol buffer has at most 2 GiB, and beyond the weights there is the graph.
LARGEST = 2**31 - 2**26
OF_ONNX = ("", "ai.onnx")  # the names of the domain of ONNX's own operators
_SCRIPT_MOST = 20  # the newest opset of the exporter over TorchScript
_NEW_LEAST = 18  # the oldest of the other


@dataclass(frozen=True)
class Asked:
    """What is exported, and what is wanted."""

    called: TensorForward
    signature: ModelSignature
    tensors: tuple[torch.Tensor, ...]
    output_names: tuple[str, ...]
    output_axes: Axes
    opset: int
    folder: Path  # for files that are on the way

    @property
    def axes(self) -> Axes:
        return {**self.signature.axes, **self.output_axes}


def export(asked: Asked) -> tuple[onnx.ModelProto, str]:
    """The model by the first way that leads there, and the way's name."""
    failures: list[tuple[str, str]] = []
    for name, way, (least, most) in WAYS:
        if not least <= asked.opset <= most:
            continue
        try:
            with _quiet(), _by_layers():
                model = way(asked)
            _check_result(model, asked.opset)
        except Exception as error:  # exporters raise whatever they come across
            # Without what PyTorch adds to every message.
            said = re.split(r"\.? Please feel free to request|  \[Caused by the value", first_line(error))[0]
            failures.append((name, said))
        else:
            return _renamed(model), name
        finally:
            for file in filter(Path.is_file, asked.folder.iterdir()):
                file.unlink()  # exporters leave files, of large models large ones
    raise NoWayError(asked, failures)


class NoWayError(RunError):
    """No way led there: which operator stopped it, where it is in the model, and what each way said."""

    def __init__(self, asked: Asked, failures: Sequence[tuple[str, str]]) -> None:
        with _quiet():
            stopped = obstacle([said for _, said in failures], asked.called, asked.tensors)
        super().__init__(
            _NO_WAY.format(opset=asked.opset, why=stopped or _DIFFERENT_REASONS),
            *(Text(f"{name}: {said}", f"{name}：{said}") for name, said in failures),
        )


_NO_WAY = Text(
    "no way to ONNX with opset {opset}: {why}; try another --opset that the vendor's converter supports, or write that "
    "part of the model with other operators",
    "无法以 opset {opset} 导出 ONNX：{why}；请尝试厂商转换工具支持的其他 --opset，或用其他算子改写模型的这一部分",
)
_DIFFERENT_REASONS = Text("each exporter failed for a different reason", "各导出方式失败的原因各不相同")


def _by_formulas(asked: Asked) -> onnx.ModelProto:
    with formulas(asked.opset):
        return _trace(asked.called, asked)


def _by_lowering(asked: Asked) -> onnx.ModelProto:
    with formulas(asked.opset):
        module = lowered(asked.called, asked.tensors, _dynamic_shapes(asked), asked.opset)
        return _trace(module, asked)


def _by_conversion(asked: Asked) -> onnx.ModelProto:
    from onnx import version_converter

    file = asked.folder / "new.onnx"
    weights = (*asked.called.parameters(), *asked.called.buffers())  # each once, however many places have it
    torch.onnx.export(
        asked.called,
        asked.tensors,
        str(file),
        dynamo=True,
        opset_version=max(asked.opset, _NEW_LEAST),
        input_names=list(asked.signature.names),
        output_names=list(asked.output_names),
        dynamic_shapes=_dynamic_shapes(asked),
        external_data=sum(tensor.nbytes for tensor in weights) > LARGEST,
    )
    model = onnx.load(str(file))
    if _opset(model) == asked.opset:
        return model
    return version_converter.convert_version(model, asked.opset)


def _trace(module: Any, asked: Asked) -> onnx.ModelProto:
    file = asked.folder / "script.onnx"
    has_choice = "dynamo" in inspect.signature(torch.onnx.export).parameters
    options: dict[str, Any] = {"dynamo": False} if has_choice else {}
    torch.onnx.export(
        module,
        asked.tensors,
        str(file),
        opset_version=asked.opset,
        input_names=list(asked.signature.names),
        output_names=list(asked.output_names),
        dynamic_axes=asked.axes,
        **options,
    )
    return onnx.load(str(file))


def _dynamic_shapes(asked: Asked) -> Any:
    """For torch.export: a dimension for each symbol, shared by the inputs that have it."""
    if not asked.signature.axes:
        return None
    symbols = {symbol for axes in asked.signature.axes.values() for symbol in axes.values()}
    dimensions = {symbol: torch.export.Dim(symbol) for symbol in symbols}
    shapes = tuple(
        {axis: dimensions[symbol] for axis, symbol in asked.signature.axes.get(name, {}).items()}
        for name in asked.signature.names
    )
    return {"tensors": shapes}


# What the report calls it, the function, and the opsets that it can write.
WAYS: Sequence[tuple[str, Callable[[Asked], onnx.ModelProto], tuple[int, int]]] = (
    ("TorchScript", lambda asked: _trace(asked.called, asked), (7, _SCRIPT_MOST)),
    ("TorchScript, with formulas for what ONNX lacks", _by_formulas, (7, _SCRIPT_MOST)),
    ("torch.export with PyTorch's decompositions, then TorchScript", _by_lowering, (7, _SCRIPT_MOST)),
    ("torch.export, then ONNX's converter", _by_conversion, (7, 99)),
)


def _check_result(model: onnx.ModelProto, opset: int) -> None:
    if _opset(model) != opset:
        raise RunError(
            Text(f"the exporter wrote opset {_opset(model)}", f"导出器写出的是 opset {_opset(model)}")
        )
    foreign = {f"{node.domain}::{node.op_type}" for node in nodes(model.graph) if node.domain not in OF_ONNX}
    if foreign:
        raise RunError(
            Text(
                f"the exporter wrote operators outside ONNX: {', '.join(sorted(foreign)[:5])}",
                f"导出器写出了 ONNX 之外的算子：{', '.join(sorted(foreign)[:5])}",
            )
        )
    if not is_large(model):  # a larger one is checked when it is a file
        check(model)


def is_large(model: onnx.ModelProto) -> bool:
    """Whether it is too large for one protocol buffer, which to ask for its size would need to be made."""
    tensors = [*model.graph.initializer]
    tensors += [attribute.t for node in nodes(model.graph) for attribute in node.attribute]
    return sum(len(tensor.raw_data) for tensor in tensors) > LARGEST


def check(model: onnx.ModelProto | str) -> None:
    """Ask onnx whether a model, or the file of one, is right."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # of C++, without a class in common
        raise RunError(
            Text(
                f"onnx's checker rejects the result: {first_line(error)}",
                f"onnx 检查器拒绝该结果：{first_line(error)}",
            )
        ) from None


def save(model: onnx.ModelProto, file: Path) -> Path:
    """Write a model, with the weights of a large one beside it; the answer is the file."""
    if is_large(model):
        onnx.save(model, str(file), save_as_external_data=True, location=file.name + DATA)
        shutil.copymode(file, file.with_name(file.name + DATA))  # which onnx makes for this user alone
        check(str(file))
    else:
        onnx.save(model, str(file))
    return file


def _opset(model: onnx.ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in OF_ONNX), 0)


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Those of a graph, and of the graphs within."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes(inner)


def _renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Weights by the names that the user's model has for them: ours is a layer around it."""
    names = {entry.name for entry in model.graph.initializer}
    new = {name: name.removeprefix("model.") for name in names if name.startswith("model.")}
    if len(set(new.values()) | names) != len(names) + len(new):
        return model
    for entry in model.graph.initializer:
        entry.name = new.get(entry.name, entry.name)
    for node in nodes(model.graph):
        for index, name in enumerate(node.input):
            node.input[index] = new.get(name, name)
    for output in model.graph.output:
        output.name = new.get(output.name, output.name)
    return model


@contextlib.contextmanager
def _by_layers() -> Iterator[None]:
    """Attention layers in their parts: as a whole they are one operator of PyTorch's, which ONNX does not have."""
    switch = getattr(torch.backends, "mha", None)
    before = switch.get_fastpath_enabled() if switch else False
    if switch:
        switch.set_fastpath_enabled(False)
    try:
        yield
    finally:
        if switch:
            switch.set_fastpath_enabled(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Exporters talk a lot, from Python and from C++; what went wrong is in the exception."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), _silenced(sys.stdout, 1), _silenced(sys.stderr, 2):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextlib.contextmanager
def _silenced(stream: TextIO, number: int) -> Iterator[None]:
    """What is written to a stream, or past it to its descriptor, goes nowhere."""
    stream.flush()
    kept = os.dup(number)
    nothing = os.open(os.devnull, os.O_WRONLY)
    redirect = contextlib.redirect_stdout if number == 1 else contextlib.redirect_stderr
    try:
        os.dup2(nothing, number)
        with redirect(io.StringIO()):
            yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(nothing)


def first_line(error: Exception) -> str:
    """What an exception says, for a message of one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= 240 else text[:240] + "..."
