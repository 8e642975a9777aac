"""How much an operator has to compute and to move, at least, by its name and the shapes of its inputs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from torchferry.traces.model import TraceSignature
from torchferry.traces.names import DTYPES
from torchferry.units import ITEM_SIZES


class KernelWork(NamedTuple):
    """What cannot be left out."""

    kind: str  # matmul, convolution, grouped convolution, attention, memory
    flops: float
    nbytes: float
    dtype: str  # that it is computed in


class InputTensor(NamedTuple):
    """An input."""

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None

    @property
    def numel(self) -> int:
        """Elements, those that an expanded tensor repeats counted each time."""
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        """That lie in memory: what an expanded tensor repeats lies there once."""
        strides = self.strides or (1,) * len(self.dims)
        return ITEM_SIZES[self.dtype] * prod(
            size for size, stride in zip(self.dims, strides, strict=True) if stride
        )


def tensor(signature: TraceSignature, index: int) -> InputTensor | None:
    """One argument; None if it is no tensor of a known type."""
    if index >= len(signature.dims) or index >= len(signature.types):
        return None
    dims, dtype = signature.dims[index], DTYPES.get(str(signature.types[index]), "")
    if dtype not in ITEM_SIZES or not isinstance(dims, list):
        return None
    if not all(isinstance(size, int) for size in dims):
        return None
    strides = signature.strides[index] if index < len(signature.strides) else None
    known = isinstance(strides, list) and len(strides) == len(dims)
    return InputTensor(tuple(dims), dtype, tuple(strides) if known and strides is not None else None)


def tensors(signature: TraceSignature) -> list[InputTensor]:
    """The arguments that are tensors, not those in lists."""
    found = (tensor(signature, index) for index in range(len(signature.dims)))
    return [each for each in found if each is not None]


def work_of(operator: str, signature: TraceSignature) -> KernelWork | None:
    """None: it is not known, or depends on values."""
    name = operator.rpartition("::")[2]
    find = _FLOPS.get(name)
    if find is not None:
        return find(signature)
    return _streamed(name, signature)


def _product(first: int) -> Callable[[TraceSignature], KernelWork | None]:
    """Of two matrices, or two stacks of them, that are the first-th argument and the next."""

    def find(signature: TraceSignature) -> KernelWork | None:
        left, right = tensor(signature, first), tensor(signature, first + 1)
        if left is None or right is None or not left.dims or len(right.dims) < 2:
            return None
        columns, inner = right.dims[-1], left.dims[-1]
        if inner != right.dims[-2] or not inner:
            return None
        written = left.numel // inner * columns * ITEM_SIZES[left.dtype]
        return KernelWork(
            "matmul", 2.0 * left.numel * columns, left.nbytes + right.nbytes + written, left.dtype
        )

    return find


def _linear(signature: TraceSignature) -> KernelWork | None:
    inputs, weight = tensor(signature, 0), tensor(signature, 1)
    if inputs is None or weight is None or not inputs.dims or len(weight.dims) != 2 or not inputs.dims[-1]:
        return None
    outputs = weight.dims[0]
    written = inputs.numel // inputs.dims[-1] * outputs * ITEM_SIZES[inputs.dtype]
    return KernelWork(
        "matmul", 2.0 * inputs.numel * outputs, inputs.nbytes + weight.nbytes + written, inputs.dtype
    )


class _ArgumentPlaces(NamedTuple):
    """Which arguments of a convolution are which."""

    stride: int
    padding: int
    dilation: int
    transposed: int = -1


def _convolution(places: _ArgumentPlaces) -> Callable[[TraceSignature], KernelWork | None]:
    def find(signature: TraceSignature) -> KernelWork | None:
        inputs, weight = tensor(signature, 0), tensor(signature, 1)
        if inputs is None or weight is None or len(weight.dims) < 3 or len(inputs.dims) != len(weight.dims):
            return None
        if _concrete(signature, places.transposed) is True:
            flops = 2.0 * inputs.numel * weight.numel / max(weight.dims[0], 1)
            return KernelWork("convolution", flops, inputs.nbytes + weight.nbytes, inputs.dtype)
        sizes = _output_sizes(signature, places, inputs.dims[2:], weight.dims[2:])
        if sizes is None:
            return None
        grouped = weight.dims[1] != inputs.dims[1]
        outputs = inputs.dims[0] * weight.dims[0] * prod(sizes)
        flops = 2.0 * outputs * weight.numel / max(weight.dims[0], 1)
        moved = inputs.nbytes + weight.nbytes + outputs * ITEM_SIZES[inputs.dtype]
        return KernelWork("grouped convolution" if grouped else "convolution", flops, moved, inputs.dtype)

    return find


def _output_sizes(
    signature: TraceSignature, places: _ArgumentPlaces, sizes: tuple[int, ...], kernel: tuple[int, ...]
) -> list[int] | None:
    stride, padding, dilation = (
        _numbers(_concrete(signature, place), len(sizes))
        for place in (places.stride, places.padding, places.dilation)
    )
    if stride is None or padding is None or dilation is None or 0 in stride:
        return None
    return [
        (size + 2 * pad - spread * (width - 1) - 1) // step + 1
        for size, width, step, pad, spread in zip(sizes, kernel, stride, padding, dilation, strict=True)
    ]


def _convolution_backward(transposed: int, mask: int) -> Callable[[TraceSignature], KernelWork | None]:
    """Of the input and of the weight, or of one of them; that of the bias is nothing beside them."""

    def find(signature: TraceSignature) -> KernelWork | None:
        gradient, inputs, weight = (tensor(signature, index) for index in range(3))
        wanted = _concrete(signature, mask)
        if (
            gradient is None
            or inputs is None
            or weight is None
            or not weight.dims
            or not isinstance(wanted, list)
        ):
            return None
        count = sum(1 for each in wanted[:2] if each is True)
        outer = inputs if _concrete(signature, transposed) is True else gradient
        flops = 2.0 * count * outer.numel * weight.numel / max(weight.dims[0], 1)
        moved = gradient.nbytes + (inputs.nbytes + weight.nbytes) * count / 2
        grouped = outer is gradient and weight.dims[1:2] != inputs.dims[1:2]
        return KernelWork("grouped convolution" if grouped else "convolution", flops, moved, gradient.dtype)

    return find


def _convolution_backward_input(signature: TraceSignature) -> KernelWork | None:
    """As it was called in 2021."""
    gradient, weight = tensor(signature, 1), tensor(signature, 2)
    if gradient is None or weight is None or not weight.dims:
        return None
    flops = 2.0 * gradient.numel * weight.numel / max(weight.dims[0], 1)
    return KernelWork("convolution", flops, gradient.nbytes + weight.nbytes, gradient.dtype)


def _attention(first: int, sequence: int, products: int) -> Callable[[TraceSignature], KernelWork | None]:
    """Query, key and value from the first-th argument on. Whether half of it is masked is not recorded: all counts."""

    def find(signature: TraceSignature) -> KernelWork | None:
        found = [tensor(signature, first + index) for index in range(3)]
        query, key, value = found
        if query is None or key is None or value is None or len(query.dims) != 4 or len(key.dims) != 4:
            return None
        flops = 2.0 * products * query.numel * key.dims[sequence]
        moved = 2 * query.nbytes + key.nbytes + value.nbytes
        return KernelWork("attention", flops, moved, query.dtype)

    return find


def _concrete(signature: TraceSignature, index: int) -> Any:
    """The value of an argument; None where it was not recorded."""
    if not 0 <= index < len(signature.concrete) or not isinstance(signature.concrete[index], str):
        return None
    text = signature.concrete[index].replace("True", "true").replace("False", "false")
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _numbers(value: Any, count: int) -> list[int] | None:
    """One for each dimension: a single one stands for all."""
    if not isinstance(value, list) or not value or not all(type(each) is int for each in value):
        return None
    return value * count if len(value) == 1 else value if len(value) == count else None


_OF_CONVOLUTION = _ArgumentPlaces(3, 4, 5, 6)
_OF_LIBRARY = _ArgumentPlaces(4, 3, 5)
_FLOPS: dict[str, Callable[[TraceSignature], KernelWork | None]] = {
    "mm": _product(0),
    "bmm": _product(0),
    "addmm": _product(1),
    "_addmm_activation": _product(1),
    "baddbmm": _product(1),
    "linear": _linear,
    "mkldnn_linear": _linear,
    "convolution": _convolution(_OF_CONVOLUTION),
    "_convolution": _convolution(_OF_CONVOLUTION),
    "convolution_overrideable": _convolution(_OF_CONVOLUTION),
    "mkldnn_convolution": _convolution(_OF_LIBRARY),
    "miopen_convolution": _convolution(_OF_LIBRARY),
    "cudnn_convolution": _convolution(_ArgumentPlaces(3, 2, 4)),
    "convolution_backward": _convolution_backward(7, 10),
    "convolution_backward_overrideable": _convolution_backward(6, 9),
    "cudnn_convolution_backward_input": _convolution_backward_input,
    "_flash_attention_forward": _attention(0, 1, 2),
    "_efficient_attention_forward": _attention(0, 1, 2),
    "_flash_attention_backward": _attention(1, 1, 5),
    "_efficient_attention_backward": _attention(1, 1, 5),
    "_scaled_dot_product_flash_attention_for_cpu": _attention(0, 2, 2),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(1, 2, 5),
    "_scaled_dot_product_cudnn_attention": _attention(0, 2, 2),
    "_scaled_dot_product_cudnn_attention_backward": _attention(1, 2, 5),
    "_scaled_dot_product_fused_attention_overrideable": _attention(0, 2, 2),
}

# Each reads all of its inputs once and, where it is marked, writes as much as the greatest of them.
_WRITES_ALL = re.compile(
    r"(?:add|sub|rsub|mul|div|pow|neg|abs|exp|log|sqrt|rsqrt|sin|cos|tanh|erf|sign|reciprocal|square|sigmoid|relu6?|"
    r"gelu|silu|elu|mish|hardtanh|hardswish|hardsigmoid|leaky_relu|threshold|softplus|clamp|clamp_min|clamp_max|"
    r"addcmul|addcdiv|lerp|where|masked_fill|maximum|minimum|fmod|remainder|logical_\w+|native_dropout|_softmax|"
    r"_log_softmax|native_layer_norm|native_group_norm|native_batch_norm|cudnn_batch_norm|miopen_batch_norm|tril|"
    r"triu|threshold_backward|\w*(?:relu|gelu|silu|sigmoid|tanh|softmax|softmax_data|dropout|hardtanh|hardswish)"
    r"_backward(?:_data)?|native_layer_norm_backward|native_batch_norm_backward|cudnn_batch_norm_backward|"
    r"miopen_batch_norm_backward)_?"
)
_READS_ALL = re.compile(
    r"(?:sum|mean|amax|amin|max|min|var|std|norm|linalg_vector_norm|all|any|copy_|fill_|zero_)"
)


def _streamed(name: str, signature: TraceSignature) -> KernelWork | None:
    """Work of an operator that does little more than to move its inputs through the device."""
    writes = _WRITES_ALL.fullmatch(name) is not None
    if not writes and _READS_ALL.fullmatch(name) is None:
        return None
    inputs = tensors(signature)
    if not inputs:
        return None
    moved = sum(each.nbytes for each in inputs)
    if writes:
        moved += max(each.numel * ITEM_SIZES[each.dtype] for each in inputs)
    return KernelWork("memory", 0.0, float(moved), inputs[0].dtype)
