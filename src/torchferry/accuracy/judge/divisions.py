"""Along which dimensions an operator can be computed part by part: what each part gives is what the whole gives there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache

from torchferry.accuracy.judge.execution import is_random
from torchferry.accuracy.judge.formulas import formula_of
from torchferry.accuracy.judge.margins import margins_of
from torchferry.accuracy.model import Call, TensorRecord, Value
from torchferry.operators.names import without_overload


@dataclass(frozen=True)
class DividedAxis:
    """A dimension that is divided: where the tensors of a call have it."""

    size: int
    inputs: Mapping[int, int]  # number of an input -> its dimension
    outputs: Mapping[int, int]
    arguments: tuple[tuple[str, int | None], ...] = ()  # that hold the size: a number, or an item of a list


@dataclass(frozen=True)
class Division:
    """One way to compute some of the outputs of a call in parts."""

    outputs: frozenset[int]
    axes: tuple[DividedAxis, ...]
    arguments: Mapping[str, Value] = field(default_factory=dict)  # instead of the call's
    # a table among the inputs, and the input that says which rows of it are read
    rows: tuple[int, int] | None = None


class Named:
    """The tensors of a call by the names of their arguments."""

    def __init__(self, call: Call) -> None:
        self.call, self.inputs, self.outputs = call, call.inputs, call.outputs
        self.given: dict[str, Value] = dict(call.arguments)
        self._numbers = {record.name.partition("/")[2]: at for at, record in enumerate(call.inputs)}
        self._written = {record.name.partition("/")[2]: at for at, record in enumerate(call.outputs)}

    def shape(self, *names: str) -> tuple[int, ...] | None:
        """Of the first of these inputs that there is."""
        return next((self.inputs[self._numbers[name]].shape for name in names if name in self._numbers), None)

    def axis(
        self,
        size: int,
        inputs: Mapping[str, int],
        outputs: Mapping[int, int],
        arguments: Iterable[tuple[str, int | None]] = (),
    ) -> DividedAxis:
        """Of named inputs, as far as there are any of that size there; an argument that is written to is an output."""
        places = {
            self._numbers[name]: dimension % max(1, len(self.inputs[self._numbers[name]].shape))
            for name, dimension in inputs.items()
            if name in self._numbers and has(self.inputs[self._numbers[name]], dimension, size)
        }
        results = {
            at: dimension for at, dimension in outputs.items() if has(self.outputs[at], dimension, size)
        }
        for name, dimension in inputs.items():
            if name in self._written:
                results[self._written[name]] = dimension
        return DividedAxis(size, places, results, tuple(arguments))

    def common_axis(self, dimension: int, size: int, least_rank: int = 1) -> DividedAxis:
        """A dimension of this size that all tensors with so many dimensions have at the same place."""
        inputs, outputs = (
            {
                at: dimension
                for at, each in enumerate(records)
                if len(each.shape) >= least_rank and has(each, dimension, size)
            }
            for records in (self.inputs, self.outputs)
        )
        return DividedAxis(size, inputs, outputs)

    def number(self, name: str) -> int:
        """The place of an argument among the inputs."""
        return self._numbers[name]

    def all_outputs(self) -> frozenset[int]:
        return frozenset(range(len(self.outputs)))

    def result(self, number: int) -> int | None:
        """The place among the outputs of what the call answered at this place."""
        return self._written.get(f"output_{number}")


def has(record: TensorRecord, dimension: int, size: int) -> bool:
    """Whether a tensor has this size in a dimension."""
    shape = record.shape
    return -len(shape) <= dimension < len(shape) and shape[dimension] == size


Rule = Callable[[Named], list[Division]]


_CONVOLUTIONS = (
    "convolution", "_convolution", "cudnn_convolution", "miopen_convolution", "mkldnn_convolution", "_slow_conv2d_forward",
    "slow_conv3d_forward", "convolution_overrideable", "_conv_depthwise2d", "conv_depthwise3d", "cudnn_convolution_transpose",
    "miopen_depthwise_convolution", "miopen_convolution_transpose",
)  # fmt: skip
_BATCH_NORMS = (
    "native_batch_norm*", "_native_batch_norm*", "cudnn_batch_norm*", "miopen_batch_norm*", "_batch_norm_with_update*",
    "batch_norm_backward",
)  # fmt: skip


def _product(named: Named) -> list[Division]:
    """Rows of the first matrix, columns of the second; before them, matrices."""
    one, other = ("mat1", "mat2") if named.shape("mat1") else ("self", "mat2")
    if named.shape("batch1"):
        one, other = "batch1", "batch2"
    left, right = named.shape(one), named.shape(other)
    if left is None or right is None:
        return []
    added = ("self",) if one != "self" else ()  # what the product is added to
    rank = len(left)
    if rank == 3 and added and len(named.shape("self") or ()) != 3:
        return []
    rows = named.axis(left[-2], {one: rank - 2, **dict.fromkeys(added, -2)}, {0: rank - 2})
    columns = named.axis(right[-1], {other: len(right) - 1, **dict.fromkeys(added, -1)}, {0: rank - 1})
    if rank != 3:
        return [Division(frozenset([0]), (rows, columns))]
    matrices = named.axis(left[0], dict.fromkeys((one, other, *added), 0), {0: 0})
    return [Division(frozenset([0]), (matrices, rows, columns))]


def _linear(named: Named) -> list[Division]:
    source, weight = named.shape("input", "self"), named.shape("weight")
    if source is None or weight is None or len(weight) != 2 or len(source) < 2:
        return []
    name = "input" if named.shape("input") else "self"
    rows = [named.axis(source[at], {name: at}, {0: at}) for at in range(len(source) - 1)]
    columns = named.axis(weight[0], {"weight": 0, "bias": 0}, {0: len(source) - 1})
    return [Division(frozenset([0]), (*rows, columns))]


def _convolution(named: Named) -> list[Division]:
    """Images; and the channels that come out, unless they are in groups."""
    source, weight = named.shape("input", "self"), named.shape("weight")
    if source is None or weight is None or len(source) != len(weight):
        return []
    images = named.axis(source[0], {"input": 0, "self": 0}, {0: 0})
    is_transposed = named.given.get("transposed") is True or "transpose" in named.call.operator
    if named.given.get("groups", 1) != 1 or "depthwise" in named.call.operator:
        return [Division(frozenset([0]), (images,))]
    count = weight[1 if is_transposed else 0]
    channels = named.axis(count, {"weight": 1 if is_transposed else 0, "bias": 0}, {0: 1})
    return [Division(frozenset([0]), (images, channels))]


def _convolution_backward(named: Named) -> list[Division]:
    """The gradient of the images by images; those of the weights by channels that go in and come out."""
    source, weight, gradient = named.shape("input"), named.shape("weight"), named.shape("grad_output")
    mask = named.given.get("output_mask")
    if source is None or weight is None or gradient is None or len(source) != len(weight):
        return []
    if not isinstance(mask, tuple):
        return []
    of_input, of_weight, of_bias = (named.result(at) if asked else None for at, asked in enumerate(mask))
    found = []
    is_plain = named.given.get("groups", 1) == 1
    out, into = (1, 0) if named.given.get("transposed") is True else (0, 1)
    if of_input is not None:
        images = named.axis(source[0], {"grad_output": 0, "input": 0}, {of_input: 0})
        channels = [named.axis(source[1], {"input": 1, "weight": into}, {of_input: 1})] if is_plain else []
        arguments = {"output_mask": (True, False, False)}
        found.append(Division(frozenset([of_input]), (images, *channels), arguments))
    by_out = {at: dimension for at, dimension in ((of_weight, out), (of_bias, 0)) if at is not None}
    if by_out and is_plain:
        bias = () if named.given.get("bias_sizes") is None else (("bias_sizes", 0),)
        by_into = {} if of_weight is None else {of_weight: into}
        outer = named.axis(gradient[1], {"grad_output": 1, "weight": out}, by_out, bias)
        inner = named.axis(source[1], {"input": 1, "weight": into}, by_into)
        found.append(Division(frozenset(by_out), (outer, inner), {"output_mask": (False, *mask[1:])}))
    return found


def _batch_norm(named: Named) -> list[Division]:
    """By channels; scratch memory has no dimension for them."""
    source = named.shape("input")
    if source is None or len(source) < 2:
        return []
    inputs, outputs = (
        {
            at: dimension
            for at, each in enumerate(records)
            if has(each, dimension := 1 if len(each.shape) == len(source) else 0, source[1])
        }
        for records in (named.inputs, named.outputs)
    )
    return [Division(frozenset(outputs), (DividedAxis(source[1], inputs, outputs),))]


def _layer_norm(named: Named) -> list[Division]:
    """By rows; what is added up over all rows, by columns."""
    source, normalised = named.shape("input"), named.given.get("normalized_shape")
    if source is None or not isinstance(normalised, tuple):
        return []
    rows = len(source) - len(normalised)
    by_rows = [
        at
        for at, each in enumerate(named.outputs)
        if each.shape[:rows] == source[:rows] and len(each.shape) == len(source)
    ]
    axes = []
    for dimension in range(rows):
        inputs = {at: dimension for at, each in enumerate(named.inputs) if len(each.shape) == len(source)}
        axes.append(DividedAxis(source[dimension], inputs, dict.fromkeys(by_rows, dimension)))
    mask = named.given.get("output_mask")
    arguments: dict[str, Value] = (
        {"output_mask": (True, *[False] * (len(mask) - 1))} if isinstance(mask, tuple) else {}
    )
    found = [Division(frozenset(by_rows), tuple(axes), arguments)]
    others = named.all_outputs() - set(by_rows)
    if others and isinstance(mask, tuple) and len(normalised) == 1:
        inputs = {
            at: len(each.shape) - 1
            for at, each in enumerate(named.inputs)
            if each.shape and each.shape[-1] == source[-1]
        }
        columns = DividedAxis(source[-1], inputs, dict.fromkeys(others, 0), (("normalized_shape", 0),))
        found.append(Division(others, (columns,), {"output_mask": (False, *mask[1:])}))
    return found


def _group_norm(named: Named) -> list[Division]:
    source = named.shape("input")
    if source is None:
        return []
    images = replace(named.common_axis(0, source[0], least_rank=2), arguments=(("N", None),))
    mask = named.given.get("output_mask")
    arguments: dict[str, Value] = {"output_mask": (True, False, False)} if mask is not None else {}
    return [Division(frozenset(images.outputs), (images,), arguments)]


def _attention(named: Named) -> list[Division]:
    """By batches, and by heads where all have as many."""
    query, key = named.shape("query"), named.shape("key")
    if query is None or key is None or len(query) != 4 or named.given.get("dropout_p"):
        return []
    dimensions = (0, 1) if query[1] == key[1] else (0,)
    axes = [named.common_axis(dimension, query[dimension], least_rank=3) for dimension in dimensions]
    return [Division(frozenset(axes[0].outputs), tuple(axes))]


def _embedding(named: Named) -> list[Division]:
    table, indices = named.shape("weight"), named.shape("indices")
    if table is None or indices is None:
        return []
    axes = [named.axis(size, {"indices": at}, {0: at}) for at, size in enumerate(indices)]
    columns = named.axis(table[1], {"weight": 1}, {0: len(indices)})
    rows = named.number("weight"), named.number("indices")
    return [Division(frozenset([0]), (*axes, columns), rows=rows)]


def _embedding_backward(named: Named) -> list[Division]:
    """Columns alone: any position may be of any row."""
    gradient = named.shape("grad_output")
    if gradient is None or named.given.get("scale_grad_by_freq"):
        return []
    return [Division(frozenset([0]), (named.axis(gradient[-1], {"grad_output": len(gradient) - 1}, {0: 1}),))]


def _likelihood_backward(named: Named) -> list[Division]:
    """Rows; what all were divided by is an argument."""
    scores = named.shape("self")
    if scores is None or len(scores) != 2:
        return []
    names = {"self": 0, "target": 0, **({"grad_output": 0} if named.given.get("reduction") == 0 else {})}
    return [Division(frozenset([0]), (named.axis(scores[0], names, {0: 0}),))]


# Of the class of exact operators, those that look at the elements of their own place alone.
_EXACT_BY_ELEMENT = (
    "_to_copy", "copy_", "clone", "contiguous", "detach*", "alias*", "lift*", "relu*", "threshold*", "hardtanh*", "clamp*",
    "clip*", "abs*", "neg*", "sign*", "eq", "eq_", "ne", "ne_", "lt", "lt_", "le", "le_", "gt", "gt_", "ge", "ge_", "logical_*", "bitwise_*", "__and__*", "__or__*",
    "__xor__*", "isnan", "isinf", "isfinite", "isneginf", "isposinf", "floor*", "ceil*", "trunc*", "round*", "masked_fill*",
    "where*", "fmax", "fmin", "maximum", "minimum", "fill_", "zero_", "ones_like", "zeros_like", "full_like", "nan_to_num*",
    "heaviside", "copysign*", "positive", "signbit", "_foreach_*",
)  # fmt: skip
# Of the other classes whose elements do not mix, those that mix a few, or depend on where they are or how many.
_NOT_BY_ELEMENT = (
    "cross*", "linalg_cross*", "linspace*", "arange*", "glu*", "prelu*", "_amp_update_scale_", "*_cell*", "polygamma_*",
)  # fmt: skip
_ALONG_ONE = (
    "_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "_safe_softmax", "cumsum*", "cumprod*",
    "cummax", "cummin", "logcumsumexp", "_logcumsumexp", "sort*", "topk", "argsort", "glu", "glu_backward", "index_select",
    "gather", "cat", "flip", "kthvalue", "median", "nanmedian", "mode",
)  # fmt: skip
_OVER_SOME = (
    "sum", "mean", "nansum", "amax", "amin", "aminmax", "var", "std", "var_mean", "std_mean", "logsumexp", "prod", "any", "all",
    "linalg_vector_norm", "norm", "argmax", "argmin", "max", "min", "count_nonzero",
)  # fmt: skip
_BY_IMAGE = (
    "max_pool*", "avg_pool*", "_adaptive_avg_pool*", "adaptive_avg_pool*", "adaptive_max_pool*", "upsample_*", "_upsample_*",
    "reflection_pad*", "replication_pad*", "max_unpool*", "pixel_*shuffle", "grid_sampler*",
)  # fmt: skip


def divisions_of(call: Call) -> list[Division]:
    """Ways that together tell of as many outputs as possible; none: the call is one whole."""
    rule = _rule(without_overload(call.operator).partition("::")[2])
    if rule is None or (is_random(call.operator) and formula_of(without_overload(call.operator)) is None):
        return []
    found = [
        replace(each, axes=tuple(axis for axis in each.axes if axis.size > 1 and _fits(axis, call)))
        for each in rule(Named(call))
    ]
    return [each for each in found if each.outputs and each.axes]


def by_element(call: Call) -> Division | None:
    """Of a call whose operator does look at the elements of each place alone; None: shapes are against it."""
    return next(iter(_by_element(Named(call))), None)


def _fits(axis: DividedAxis, call: Call) -> bool:
    return bool(axis.outputs) and all(
        has(records[at], dimension, axis.size)
        for records, places in ((call.inputs, axis.inputs), (call.outputs, axis.outputs))
        for at, dimension in places.items()
    )


@cache
def _rule(name: str) -> Rule | None:
    if name in _BY_NAME:
        return _BY_NAME[name]
    for patterns, rule in _BY_PATTERN:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return rule
    margins = margins_of(f"aten::{name}")
    if not margins.pointwise or any(fnmatchcase(name, pattern) for pattern in _NOT_BY_ELEMENT):
        return None
    if margins.name == "exact" and not any(fnmatchcase(name, pattern) for pattern in _EXACT_BY_ELEMENT):
        return None
    return _by_element


def _by_element(named: Named) -> list[Division]:
    """Inputs may have fewer dimensions, or repeat one; the mean of a loss depends on how many there are."""
    shapes = {record.shape for record in named.outputs}
    if len(shapes) != 1 or ("reduction" in named.given and named.given["reduction"] != 0):
        return []
    (shape,) = shapes
    for record in named.inputs:
        padded = (1,) * (len(shape) - len(record.shape)) + record.shape
        if len(padded) != len(shape) or any(
            own not in (1, size) for own, size in zip(padded, shape, strict=True)
        ):
            return []
    axes = []
    for dimension, size in enumerate(shape):
        back = dimension - len(shape)
        inputs = {at: len(each.shape) + back for at, each in enumerate(named.inputs) if has(each, back, size)}
        axes.append(DividedAxis(size, inputs, dict.fromkeys(named.all_outputs(), dimension)))
    return [Division(named.all_outputs(), tuple(axes))]


def _along_one(named: Named) -> list[Division]:
    """Every dimension but one; the tensors that have all dimensions are divided."""
    rank = len(named.outputs[0].shape)
    default = 0 if without_overload(named.call.operator) == "aten::cat" else -1
    dimensions = _whole_numbers(named.given.get("dims", named.given.get("dim", default)))
    mixed = {each % max(1, rank) for each in dimensions}
    is_reduced = any(len(each.shape) == rank + 1 for each in named.inputs)
    if is_reduced or not rank:  # kthvalue and its like
        return _over(named, dimensions, bool(named.given.get("keepdim", False)))
    return _of_whole_rank(named, [dimension for dimension in range(rank) if dimension not in mixed])


def _whole_numbers(value: Value) -> list[int]:
    return [each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, int)]


def _of_whole_rank(named: Named, dimensions: Iterable[int], argument: str | None = None) -> list[Division]:
    """Along these dimensions, which all results have and the inputs of their rank; a list that is an argument may hold
    the sizes."""
    shape = named.outputs[0].shape
    axes = []
    for dimension in dimensions:
        inputs = {at: dimension for at, each in enumerate(named.inputs) if len(each.shape) == len(shape)}
        outputs = dict.fromkeys(named.all_outputs(), dimension)
        arguments = ((argument, dimension),) if argument else ()
        axes.append(DividedAxis(shape[dimension], inputs, outputs, arguments))
    return [Division(named.all_outputs(), tuple(axes))]


def _over_some(named: Named) -> list[Division]:
    given = named.given.get("dim")
    if given is None or given == () or not named.inputs:
        return []
    return _over(named, _whole_numbers(given), bool(named.given.get("keepdim", False)))


def _over(named: Named, dimensions: Sequence[int], is_kept: bool) -> list[Division]:
    shape = named.inputs[0].shape
    gone = {each % max(1, len(shape)) for each in dimensions}
    left = [dimension for dimension in range(len(shape)) if dimension not in gone]
    axes = [
        DividedAxis(
            shape[dimension],
            {at: dimension for at, each in enumerate(named.inputs) if len(each.shape) == len(shape)},
            dict.fromkeys(named.all_outputs(), dimension if is_kept else place),
        )
        for place, dimension in enumerate(left)
    ]
    return [Division(named.all_outputs(), tuple(axes))]


def _by_image(named: Named) -> list[Division]:
    """Images and their channels. Sizes that are given as a list begin with both."""
    rank = len(named.outputs[0].shape)
    name = without_overload(named.call.operator).partition("::")[2]
    sides = next((int(letter) for letter in name if letter in "123"), 3 if "shuffle" in name else None)
    if sides is None or any(len(each.shape) != rank for each in (*named.inputs, *named.outputs)):
        return []
    dimensions = range(min(rank - sides, 1 if name.startswith("grid_sampler") else rank))
    sizes = named.given.get("input_size")
    is_given = isinstance(sizes, tuple) and len(sizes) == rank
    return _of_whole_rank(named, dimensions, "input_size" if is_given else None)


def _padding(named: Named) -> list[Division]:
    padded = named.given.get("pad")
    rank = len(named.outputs[0].shape)
    count = len(padded) // 2 if isinstance(padded, tuple) else rank
    return _of_whole_rank(named, range(rank - count))


_BY_NAME: dict[str, Rule] = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "_addmm_activation"), _product),
    **dict.fromkeys(("linear", "mkldnn_linear", "_mkl_linear"), _linear),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(("convolution_backward", "convolution_backward_overrideable"), _convolution_backward),
    **dict.fromkeys(("native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm"), _layer_norm),
    **dict.fromkeys(("native_group_norm", "native_group_norm_backward"), _group_norm),
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
    "nll_loss_backward": _likelihood_backward,
    **dict.fromkeys(_OVER_SOME, _over_some),
    "constant_pad_nd": _padding,
}
_BY_PATTERN: list[tuple[tuple[str, ...], Rule]] = [
    (_BATCH_NORMS, _batch_norm),
    (("_scaled_dot_product_*",), _attention),
    (_ALONG_ONE, _along_one),
    (_BY_IMAGE, _by_image),
]
