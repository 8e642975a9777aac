"""A model in fewer operators: PyTorch's own decompositions for those that the exporter over TorchScript can't write."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

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
    plain = _plain_operators()
    for node in list(graph_module.graph.nodes):
        if not node.users and any(word in str(node.target) for word in _ASSERTIONS):
            graph_module.graph.erase_node(node)
        elif node.target in plain:
            node.target = plain[node.target]
        elif _takes_free_sizes(node):
            node.target = _as_in_programs(node.target)
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


def _as_in_programs(operator: Any) -> Any:
    """The function as programs call it: unlike the operator it takes sizes that a trace keeps."""
    name = operator.overloadpacket.__name__
    return getattr(torch, name, None) or getattr(torch.Tensor, name, operator)


def _plain_operators() -> dict[Any, Callable[..., Any]]:
    """What decompositions end in, as functions that the exporter over TorchScript can write."""
    prims = torch.ops.prims
    return {
        torch.ops.aten.sym_size.int: _size,
        prims.convert_element_type.default: lambda tensor, dtype: tensor.to(dtype),
        prims.expm1.default: lambda tensor: torch.exp(tensor) - 1,
        prims.trunc.default: lambda tensor: torch.sign(tensor) * torch.floor(torch.abs(tensor)),
        prims.hypot.default: lambda left, right: torch.sqrt(left * left + right * right),
        prims.prod.default: _product,
    }


def _product(tensor: torch.Tensor, axes: Sequence[int], *, output_dtype: Any = None) -> torch.Tensor:
    for axis in sorted(axes, reverse=True):
        tensor = tensor.prod(axis)
    return tensor


def _decompositions(opset: int) -> dict[Any, Any]:
    """Of the operators that the opset lacks."""
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
