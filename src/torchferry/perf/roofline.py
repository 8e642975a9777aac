"""The least time in which a device can do an operator, by the shapes of its inputs, and how near a run comes to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from torchferry.perf.tables.kernels import KernelSignature
from torchferry.traces.model import TraceSignature
from torchferry.traces.names import DTYPES
from torchferry.units import ITEM_SIZES
from torchferry.vendors.schema import toml_module


class KernelWork(NamedTuple):
    """What an operator or a kernel has to compute and to move at least."""

    kind: str  # matmul, convolution, grouped convolution, attention, memory
    flops: float
    nbytes: float
    dtype: str  # that it is computed in


class InputTensor(NamedTuple):
    """One input of an operator."""

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
    """The work of an operator; None: it is not known, or depends on values."""
    name = operator.rpartition("::")[2]
    find = _FLOPS.get(name)
    if find is not None:
        return find(signature)
    return _streamed(name, signature)


def _product(first: int) -> Callable[[TraceSignature], KernelWork | None]:
    """The work of a product of two matrices, or two stacks of them: the first-th argument and the next."""

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
    """The gradients of the input and of the weight, or of one of them; that of the bias is nothing beside them."""

    def find(signature: TraceSignature) -> KernelWork | None:
        gradient, inputs, weight = (tensor(signature, index) for index in range(3))
        wanted = _concrete(signature, mask)
        if gradient is None or inputs is None or weight is None or not weight.dims:
            return None
        if not isinstance(wanted, list):
            return None
        count = sum(1 for each in wanted[:2] if each is True)
        outer = inputs if _concrete(signature, transposed) is True else gradient
        flops = 2.0 * count * outer.numel * weight.numel / max(weight.dims[0], 1)
        moved = gradient.nbytes + (inputs.nbytes + weight.nbytes) * count / 2
        grouped = outer is gradient and weight.dims[1:2] != inputs.dims[1:2]
        return KernelWork("grouped convolution" if grouped else "convolution", flops, moved, gradient.dtype)

    return find


def _convolution_backward_input(signature: TraceSignature) -> KernelWork | None:
    """The gradient of a convolution's input, as it was called in 2021."""
    gradient, weight = tensor(signature, 1), tensor(signature, 2)
    if gradient is None or weight is None or not weight.dims:
        return None
    flops = 2.0 * gradient.numel * weight.numel / max(weight.dims[0], 1)
    return KernelWork("convolution", flops, gradient.nbytes + weight.nbytes, gradient.dtype)


def _attention(first: int, sequence: int, products: int) -> Callable[[TraceSignature], KernelWork | None]:
    """Query, key and value from the first-th argument on. Whether half of it is masked is not recorded: all counts."""

    def find(signature: TraceSignature) -> KernelWork | None:
        query, key, value = (tensor(signature, first + index) for index in range(3))
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


FILE = Path(__file__).with_name("devices.toml")
_OTHER_KEYS = ("pattern", "source", "bandwidth")


@dataclass(frozen=True)
class Peaks:
    """What a device can do at most."""

    pattern: str
    flops: Mapping[str, float]  # a second, by dtype
    bandwidth: float  # bytes a second
    source: str

    def least_seconds(self, work: KernelWork) -> float | None:
        """The least time in which it can do some work; None: what it can do with this dtype is not known."""
        by_memory = work.nbytes / self.bandwidth
        if not work.flops:
            return by_memory
        flops = self.flops.get(work.dtype)
        return max(work.flops / flops, by_memory) if flops else None


@cache
def peaks_of(device_name: str) -> Peaks | None:
    """The peaks of a device; None: nothing is known of it."""
    return next((peaks for peaks in all_peaks() if re.search(peaks.pattern, device_name)), None)


@cache
def all_peaks() -> tuple[Peaks, ...]:
    """The peaks of all known devices, in the order of the file."""
    with FILE.open("rb") as stream:
        rows = toml_module().load(stream)["device"]
    return tuple(
        Peaks(
            row["pattern"],
            {dtype: tera * 1e12 for dtype, tera in row.items() if dtype not in _OTHER_KEYS},
            row["bandwidth"] * 1e9,
            row["source"],
        )
        for row in rows
    )


LEAST_CALL = 5e-6  # seconds: what the start of a kernel and its first and last blocks cost, whatever it does
_ALIKE_WORK = 8  # calls are alike whose work is at most so many times another's
_ALIKE_INTENSITY = 4  # and whose operations for each byte are at most so many times another's


class Measured(NamedTuple):
    """Calls of one operator with one signature."""

    operator: str
    work: KernelWork
    seconds: float  # of one call


def reached(work: KernelWork | None, seconds: float, peaks: Peaks | None) -> float | None:
    """The least possible time of a call over the time that it took, up to 1; None: not known."""
    least = peaks.least_seconds(work) if work is not None and peaks is not None else None
    return min(max(least, LEAST_CALL) / seconds, 1.0) if least is not None and seconds > 0 else None


def best_of_alike(mine: Measured, others: Iterable[Measured]) -> float:
    """What this call would take at the speed of the fastest calls of the same operator that do as much in the same way.

    On a device of which nothing is known this is all that there is to compare with."""
    amount = _amount(mine.work)
    speeds = [
        _amount(other.work) / other.seconds
        for other in others
        if other.operator == mine.operator and other.seconds and _is_alike(mine.work, other.work)
    ]
    fastest = max(speeds, default=0.0)
    return min(max(amount / fastest, LEAST_CALL), mine.seconds) if fastest else mine.seconds


def _amount(work: KernelWork) -> float:
    return work.flops or work.nbytes


def _is_alike(one: KernelWork, other: KernelWork) -> bool:
    is_same = one.kind == other.kind and one.dtype == other.dtype
    if not is_same or not _is_near(_amount(one), _amount(other), _ALIKE_WORK):
        return False
    return not one.flops or _is_near(one.flops / one.nbytes, other.flops / other.nbytes, _ALIKE_INTENSITY)


def _is_near(one: float, other: float, times: float) -> bool:
    return one <= other * times and other <= one * times


_MATMUL = re.compile(r"(?:Batch)?Mat_?Mul", re.IGNORECASE)
_STREAMS = re.compile(
    r"(?:Add|Sub|Mul|Muls|Adds|Axpy|Div|RealDiv|Relu|ReluGrad|Gelu|GeluGrad|Sigmoid|Tanh|Swish|Cast|TransData|Transpose|"
    r"TransposeD|ViewCopy|TensorMove|ReduceSum|ReduceMean|Softmax|SoftmaxV2|SoftmaxGrad|ZerosLike|Fill|Square|Sqrt|Exp|"
    r"Log|Neg|Pow|Maximum|Minimum|Addcmul|Addcdiv|LayerNorm\w*|BatchNorm\w*|BNTraining\w*|Select|SelectV2)"
)
_DTYPES = {"DT_BF16": "bfloat16", "FLOAT": "float32", "DOUBLE": "float64"}


def kernel_work(type_: str, called: KernelSignature) -> KernelWork | None:
    """The work of a kernel of a table, by its type and its tensors; None: it is not known."""
    inputs = _table_tensors(called.input_shapes, called.input_dtypes)
    outputs = _table_tensors(called.output_shapes, called.output_dtypes)
    if not inputs or not outputs:
        return None
    moved = float(sum(prod(shape) * ITEM_SIZES[dtype] for shape, dtype in (*inputs, *outputs)))
    dtype = inputs[0][1]
    if _MATMUL.match(type_):
        # Whether an argument is transposed is not told: what both have in common follows from the sizes.
        result = outputs[0][0]
        if len(inputs) < 2 or len(result) < 2:
            return None
        left, right = prod(inputs[0][0]), prod(inputs[1][0])
        rows, columns, batches = result[-2], result[-1], prod(result[:-2])
        inner = left // max(batches * rows, 1)
        if left != batches * rows * inner or right not in (batches * inner * columns, inner * columns):
            return None
        return KernelWork("matmul", 2.0 * batches * rows * inner * columns, moved, dtype)
    return KernelWork("memory", 0.0, moved, dtype) if _STREAMS.fullmatch(type_) else None


def _table_tensors(shapes: str, dtypes: str) -> list[tuple[list[int], str]]:
    """Empty if any of them is not known."""
    found = []
    for shape, name in zip(shapes.split(";"), dtypes.split(";"), strict=False):
        sizes = [size.strip() for size in shape.strip().strip('"').split(",") if size.strip()]
        known = _DTYPES.get(name.strip(), name.strip().removeprefix("DT_").lower())
        if known not in ITEM_SIZES or not all(size.isdecimal() for size in sizes):
            return []
        found.append(([int(size) for size in sizes], known))
    return found
