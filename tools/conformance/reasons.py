"""Why an operator is not examined, or not in all respects; every skip has a line here."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.text import Text

from .records import Kind, Outcome, Result

REASONS = {
    "no-cpu-kernel": Text(
        "PyTorch computes it on CUDA devices only, so there is nothing to compare with",
        "PyTorch 只在 CUDA 设备上实现了该算子，没有可供比较的结果",
    ),
    "no-samples": Text(
        "PyTorch has no sample of it that runs without a CUDA device", "PyTorch 没有不依赖 CUDA 设备的样例"
    ),
    "cpu-raises": Text("the CPU raises on every sample", "CPU 在所有样例上都报错"),
    "other-dtypes": Text(
        "computes in none of these dtypes (8-bit floating point only)",
        "不支持这些数据类型（只支持 8 位浮点）",
    ),
    "sparse": Text(
        "takes or returns sparse tensors, which this suite does not compare",
        "输入或输出是稀疏张量，本测试不比较",
    ),
    "compiled-by-cuda": Text(
        "compiles CUDA source code at run time, so it exists on CUDA devices only",
        "在运行时编译 CUDA 源代码，只存在于 CUDA 设备",
    ),
}

SKIPS = {
    "sparse.mm.reduce": "sparse",
    "sparse.sampled_addmm": "sparse",
    "to_sparse": "sparse",
    "jiterator_unary": "compiled-by-cuda",
    "jiterator_binary": "compiled-by-cuda",
    "jiterator_binary_return_by_ref": "compiled-by-cuda",
    "jiterator_2inputs_2outputs": "compiled-by-cuda",
    "jiterator_4inputs_with_extra_args": "compiled-by-cuda",
}

# They return memory that nobody has written to: everything but the values is compared.
UNDEFINED_VALUES = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)

# PyTorch wants these arguments on the CPU whatever device the input is on.
HOST_ARGUMENTS = {"tensor_split": frozenset({"args", "kwargs"})}


@dataclass(frozen=True)
class Explanation:
    """Why an operator does not give what the CPU gives; differences of other kinds are not explained by it."""

    kinds: frozenset[Kind]
    text: Text


_UNSTABLE = Explanation(
    frozenset({Kind.ROUNDING}),
    Text(
        "the CPU's own result varies in the last bits from call to call (driver `gelsy`)",
        "CPU 自身的结果每次调用末位都可能不同（`gelsy` 驱动）",
    ),
)
_CHOSEN_BY_DEVICE = Explanation(
    frozenset({Kind.VALUE, Kind.ROUNDING}),
    Text(
        "PyTorch's own Python code chooses the accumulation dtype and the chunks by the name of the device type; only "
        "the CPU and CUDA accumulate in `float32`",
        "PyTorch 自身的 Python 代码按设备类型的名称选择累加精度和分块方式；只有 CPU 和 CUDA 用 `float32` 累加",
    ),
)
_POOLED_BY_OTHER_KERNEL = Explanation(
    frozenset({Kind.VIEW}),
    Text(
        "equal values; outside the CPU, PyTorch computes it as a two-dimensional pooling, so that the result is a "
        "view of a tensor with one more dimension",
        "数值相等；在 CPU 以外的设备上，PyTorch 用二维池化计算，因此结果是一个多一维的张量的视图",
    ),
)

EXPLANATIONS = {
    "linalg.lstsq": _UNSTABLE,
    "linalg.lstsq.grad_oriented": _UNSTABLE,
    "nn.functional.linear_cross_entropy.chunked": _CHOSEN_BY_DEVICE,
    "nn.functional.linear_cross_entropy.chunked_none": _CHOSEN_BY_DEVICE,
    "nn.functional.max_pool1d": _POOLED_BY_OTHER_KERNEL,
}


def explanation(result: Result) -> Text | None:
    """Why an operator differs, if that is known."""
    known = EXPLANATIONS.get(result.operator)
    if known is None or result.outcome is Outcome.CRASH:
        return None
    kinds = {difference.kind for difference in result.differences}
    return known.text if kinds <= known.kinds else None


DIFFERENCES = {
    Kind.ERROR: Text("errors", "报错"),
    Kind.STRUCTURE: Text("what is returned", "返回的结构"),
    Kind.DEVICE: Text("device", "设备"),
    Kind.DTYPE: Text("dtype", "数据类型"),
    Kind.SHAPE: Text("shape", "形状"),
    Kind.STRIDE: Text("strides", "步长"),
    Kind.VIEW: Text("views", "视图"),
    Kind.GRADIENT: Text("gradient", "梯度"),
    Kind.VALUE: Text("values", "数值"),
    Kind.ROUNDING: Text("rounding", "舍入"),
}
