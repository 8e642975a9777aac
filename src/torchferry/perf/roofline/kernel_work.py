"""How much a kernel of a table has to compute and to move, by its type and its tensors."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from torchferry.perf.roofline.work import ITEM_SIZES, Work

if TYPE_CHECKING:
    from torchferry.perf.tables.kernels import KernelSignature

_MATMUL = re.compile(r"(?:Batch)?Mat_?Mul", re.IGNORECASE)
_STREAMS = re.compile(
    r"(?:Add|Sub|Mul|Muls|Adds|Axpy|Div|RealDiv|Relu|ReluGrad|Gelu|GeluGrad|Sigmoid|Tanh|Swish|Cast|TransData|Transpose|"
    r"TransposeD|ViewCopy|TensorMove|ReduceSum|ReduceMean|Softmax|SoftmaxV2|SoftmaxGrad|ZerosLike|Fill|Square|Sqrt|Exp|"
    r"Log|Neg|Pow|Maximum|Minimum|Addcmul|Addcdiv|LayerNorm\w*|BatchNorm\w*|BNTraining\w*|Select|SelectV2)"
)
_DTYPES = {
    "DT_BF16": "bfloat16",
    "FLOAT": "float32",
    "DOUBLE": "float64",
}


def kernel_work(type_: str, called: KernelSignature) -> Work | None:
    """None: it is not known."""
    inputs = _tensors(called.input_shapes, called.input_dtypes)
    outputs = _tensors(called.output_shapes, called.output_dtypes)
    if not inputs or not outputs:
        return None
    moved = float(sum(prod(shape) * ITEM_SIZES[dtype] for shape, dtype in (*inputs, *outputs)))
    dtype = inputs[0][1]
    if _MATMUL.match(type_):
        return _product(inputs, outputs, moved, dtype)
    return Work("memory", 0.0, moved, dtype) if _STREAMS.fullmatch(type_) else None


def _product(
    inputs: list[tuple[list[int], str]], outputs: list[tuple[list[int], str]], moved: float, dtype: str
) -> Work | None:
    """Whether an argument is transposed is not told: what both have in common follows from the sizes."""
    if len(inputs) < 2 or len(outputs[0][0]) < 2:
        return None
    left, right, result = prod(inputs[0][0]), prod(inputs[1][0]), outputs[0][0]
    rows, columns, batches = result[-2], result[-1], prod(result[:-2])
    inner = left // max(batches * rows, 1)
    if left != batches * rows * inner or right not in (batches * inner * columns, inner * columns):
        return None
    return Work("matmul", 2.0 * batches * rows * inner * columns, moved, dtype)


def _tensors(shapes: str, dtypes: str) -> list[tuple[list[int], str]]:
    """Empty if any of them is not known."""
    found = []
    for shape, name in zip(shapes.split(";"), dtypes.split(";"), strict=False):
        sizes = [size.strip() for size in shape.strip().strip('"').split(",") if size.strip()]
        known = _DTYPES.get(name.strip(), name.strip().removeprefix("DT_").lower())
        if known not in ITEM_SIZES or not all(size.isdecimal() for size in sizes):
            return []
        found.append(([int(size) for size in sizes], known))
    return found
