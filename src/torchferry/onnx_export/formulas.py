"""Operators that ONNX, or an old opset of it, lacks, written out in operators that it has, while a model is traced."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode


class _FormulaCalls(TorchFunctionMode):
    """Calls of these functions are made by their formulas, under whatever name a program has them."""

    def __init__(self, formulas: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._formulas = formulas

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return self._formulas.get(func, func)(*args, **(kwargs or {}))


@contextlib.contextmanager
def formulas(opset: int) -> Iterator[None]:
    """What the opset lacks is made by formulas; also where PyTorch's own layers call it, which no mode sees."""
    lacking = [entry for entry in _TABLE if opset < entry.since]
    before = [getattr(entry.owner, entry.name) for entry in lacking]
    try:
        for entry in lacking:
            setattr(entry.owner, entry.name, entry.formula)
        with _FormulaCalls(dict(zip(before, (entry.formula for entry in lacking), strict=True))):
            yield
    finally:
        for original, entry in zip(before, lacking, strict=True):
            setattr(entry.owner, entry.name, original)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    if enable_gqa and query.size(-3) != key.size(-3):
        times = query.size(-3) // key.size(-3)
        key, value = (_each_repeated(tensor, times) for tensor in (key, value))
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = torch.matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        later = torch.arange(key.size(-2)).unsqueeze(0) > torch.arange(query.size(-2)).unsqueeze(1)
        scores = scores.masked_fill(later, float("-inf"))
    if attn_mask is not None:
        is_choice = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, float("-inf")) if is_choice else scores + attn_mask
    weights = torch.softmax(scores, -1)
    if attn_mask is not None:  # a row that may look at nothing gets nothing, where a softmax alone gives NaN
        weights = weights.masked_fill(scores.amax(-1, keepdim=True) == float("-inf"), 0.0)
    return torch.matmul(weights, value)


def _each_repeated(tensor: torch.Tensor, times: int) -> torch.Tensor:
    *batch, heads, rows, columns = tensor.shape
    spread = tensor.unsqueeze(-3).expand(*batch, heads, times, rows, columns)
    return spread.reshape(*batch, heads * times, rows, columns)


def _unflatten(tensor: torch.Tensor, dim: int, sizes: Sequence[int]) -> torch.Tensor:
    at = dim % tensor.dim()
    return tensor.reshape(*tensor.shape[:at], *sizes, *tensor.shape[at + 1 :])


def _unfold(tensor: torch.Tensor, dimension: int, size: int, step: int) -> torch.Tensor:
    """Windows side by side, without a need to know the other sizes."""
    at = dimension % tensor.dim()
    starts = range(0, int(tensor.shape[at]) - size + 1, step)
    return torch.stack([tensor.narrow(at, start, size) for start in starts], at).movedim(at + 1, -1)


def _einsum(equation: str, *operands: Any) -> torch.Tensor:
    """Of two operands without repeated letters: a product of matrices; others stay as they are."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    terms, arrow, result = equation.replace(" ", "").partition("->")
    letters = terms.split(",")
    plain = bool(arrow) and len(letters) == len(given) == 2 and "." not in equation
    if not plain or any(len(set(term)) != len(term) for term in (*letters, result)):
        return _einsum_itself(equation, *operands)
    return _product(letters[0], letters[1], result, *given)


def _product(left: str, right: str, result: str, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    shared = [letter for letter in left if letter in right and letter in result]
    summed = [letter for letter in left if letter in right and letter not in result]
    rows = [letter for letter in left if letter not in right and letter in result]
    columns = [letter for letter in right if letter not in left and letter in result]
    first = _gone(first, left, {*shared, *summed, *rows})
    second = _gone(second, right, {*shared, *summed, *columns})
    left = "".join(letter for letter in left if letter in {*shared, *summed, *rows})
    right = "".join(letter for letter in right if letter in {*shared, *summed, *columns})
    sizes = dict(zip(left, first.shape, strict=True)) | dict(zip(right, second.shape, strict=True))
    matrix = first.permute([left.index(letter) for letter in (*shared, *rows, *summed)])
    other = second.permute([right.index(letter) for letter in (*shared, *summed, *columns)])

    def count(of: list[str]) -> Any:
        return math.prod(sizes[letter] for letter in of)

    batch = [sizes[letter] for letter in shared]
    made = torch.matmul(
        matrix.reshape(*batch, count(rows), count(summed)),
        other.reshape(*batch, count(summed), count(columns)),
    )
    order = [*shared, *rows, *columns]
    return made.reshape([sizes[letter] for letter in order]).permute(
        [order.index(letter) for letter in result]
    )


def _gone(tensor: torch.Tensor, letters: str, kept: set[str]) -> torch.Tensor:
    axes = [axis for axis, letter in enumerate(letters) if letter not in kept]
    return tensor.sum(axes) if axes else tensor


def _sizes(tensor: torch.Tensor, output_size: Any) -> tuple[int, int, int, int]:
    """The rows and columns that there are, and those that are wanted."""
    sizes = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size, output_size]
    rows, columns = int(tensor.shape[-2]), int(tensor.shape[-1])
    return rows, columns, sizes[0] or rows, sizes[1] or columns


def _adaptive_average(tensor: torch.Tensor, output_size: Any) -> torch.Tensor:
    """Windows of different sizes, which ONNX has no pooling for: a product with the weights of each window."""
    rows, columns, high, wide = _sizes(tensor, output_size)
    if rows % high == 0 and columns % wide == 0:
        return _adaptive_itself(tensor, (high, wide))
    over_rows = torch.matmul(_windows(rows, high, tensor.dtype), tensor)
    return torch.matmul(over_rows, _windows(columns, wide, tensor.dtype).transpose(0, 1))


def _windows(given: int, wanted: int, dtype: torch.dtype) -> torch.Tensor:
    """A row of weights for each window."""
    weights = torch.zeros(wanted, given, dtype=dtype)
    for index in range(wanted):
        start, end = index * given // wanted, -(-(index + 1) * given // wanted)
        weights[index, start:end] = 1 / (end - start)
    return weights


def _adaptive_largest(tensor: torch.Tensor, output_size: Any, *others: Any, **named: Any) -> Any:
    """Where the sizes divide the input's: pooling with a window that does not depend on how much of the shape is known."""
    rows, columns, high, wide = _sizes(tensor, output_size)
    if others or named or rows % high or columns % wide:
        return _adaptive_largest_itself(tensor, output_size, *others, **named)
    return _layers.max_pool2d(tensor, (rows // high, columns // wide))


def _chosen(function: Callable[..., Any], is_first: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The smaller or larger of two tensors, of integers as well; what else the function does stays."""

    def made(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs and all(isinstance(each, torch.Tensor) for each in args):
            left, right = args
            if not left.is_floating_point() and left.dtype == right.dtype:
                return torch.where(is_first(left, right), left, right)
        return function(*args, **kwargs)

    return made


def _batched(function: Callable[..., Any], axes: int) -> Callable[..., Any]:
    """Pooling of a tensor without a batch, which ONNX always has."""

    def pooled(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if tensor.dim() != axes + 1:
            return function(tensor, *args, **kwargs)
        made = function(tensor.unsqueeze(0), *args, **kwargs)
        return tuple(part.squeeze(0) for part in made) if isinstance(made, tuple) else made.squeeze(0)

    return pooled


class _Formula(NamedTuple):
    owner: Any
    name: str
    since: int
    formula: Callable[..., Any]


_NEVER = 1000
_layers = torch.nn.functional
_einsum_itself, _adaptive_itself = torch.einsum, _layers.adaptive_avg_pool2d
_adaptive_largest_itself = _layers.adaptive_max_pool2d
_TABLE = (
    _Formula(_layers, "scaled_dot_product_attention", 14, _attention),
    _Formula(torch.Tensor, "unflatten", 13, _unflatten),
    _Formula(torch, "unflatten", 13, _unflatten),
    _Formula(torch, "einsum", 12, _einsum),
    _Formula(torch.Tensor, "unfold", _NEVER, _unfold),
    _Formula(_layers, "adaptive_avg_pool2d", _NEVER, _adaptive_average),
    _Formula(_layers, "adaptive_max_pool2d", _NEVER, _adaptive_largest),
    *(
        _Formula(owner, name, 12, _chosen(getattr(owner, name), is_first))
        for owner in (torch, torch.Tensor)
        for names, is_first in ((("min", "minimum"), operator.lt), (("max", "maximum"), operator.gt))
        for name in names
    ),
    _Formula(_layers, "max_pool2d", _NEVER, _batched(_layers.max_pool2d, 2)),
    _Formula(_layers, "max_pool3d", _NEVER, _batched(_layers.max_pool3d, 3)),
    _Formula(_layers, "avg_pool3d", _NEVER, _batched(_layers.avg_pool3d, 3)),
)
