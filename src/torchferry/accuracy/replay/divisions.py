"""Along which dimensions an operator can be computed part by part: what each part gives is what the whole gives there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache

from torchferry.accuracy.model import Call
from torchferry.accuracy.replay import division_rules
from torchferry.accuracy.replay.division import Axis, Division, Named, Rule, has
from torchferry.accuracy.replay.formulas import formula_of
from torchferry.accuracy.replay.margins import margins_of
from torchferry.accuracy.replay.operators import base_name, is_random

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
    "cross*",
    "linalg_cross*",
    "linspace*",
    "arange*",
    "glu*",
    "prelu*",
    "_amp_update_scale_",
    "*_cell*",
    "polygamma_*",
)
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
    rule = _rule(base_name(call.operator).partition("::")[2])
    if rule is None or (is_random(call.operator) and formula_of(base_name(call.operator)) is None):
        return []
    found = [
        replace(each, axes=tuple(axis for axis in each.axes if axis.size > 1 and _fits(axis, call)))
        for each in rule(Named(call))
    ]
    return [each for each in found if each.outputs and each.axes]


def by_element(call: Call) -> Division | None:
    """Of a call whose operator does look at the elements of each place alone; None: shapes are against it."""
    return next(iter(_by_element(Named(call))), None)


def _fits(axis: Axis, call: Call) -> bool:
    """Whether all tensors have the dimension as it is said they do."""
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
        axes.append(Axis(size, inputs, dict.fromkeys(named.all_outputs(), dimension)))
    return [Division(named.all_outputs(), tuple(axes))]


def _along_one(named: Named) -> list[Division]:
    """Every dimension but one; the tensors that have all dimensions are divided."""
    rank = len(named.outputs[0].shape)
    given = named.given.get("dims", named.given.get("dim", _default_dimension(named)))
    dimensions = [each for each in (given if isinstance(given, tuple) else (given,)) if isinstance(each, int)]
    mixed = {each % max(1, rank) for each in dimensions}
    is_reduced = any(len(each.shape) == rank + 1 for each in named.inputs)
    if is_reduced or not rank:  # kthvalue and its like
        return _over(named, dimensions, bool(named.given.get("keepdim", False)))
    return [
        Division(
            named.all_outputs(), tuple(_whole_rank(named, rank, (d for d in range(rank) if d not in mixed)))
        )
    ]


def _default_dimension(named: Named) -> int:
    return 0 if base_name(named.call.operator) == "aten::cat" else -1


def _whole_rank(named: Named, rank: int, dimensions: Iterable[int]) -> Iterable[Axis]:
    for dimension in dimensions:
        size = named.outputs[0].shape[dimension]
        inputs = {at: dimension for at, each in enumerate(named.inputs) if len(each.shape) == rank}
        yield Axis(size, inputs, dict.fromkeys(named.all_outputs(), dimension))


def _over_some(named: Named) -> list[Division]:
    given = named.given.get("dim")
    if given is None or given == () or not named.inputs:
        return []
    dimensions = [each for each in (given if isinstance(given, tuple) else (given,)) if isinstance(each, int)]
    return _over(named, dimensions, bool(named.given.get("keepdim", False)))


def _over(named: Named, dimensions: Sequence[int], is_kept: bool) -> list[Division]:
    """What is left of the first input's dimensions."""
    shape = named.inputs[0].shape
    gone = {each % max(1, len(shape)) for each in dimensions}
    left = [dimension for dimension in range(len(shape)) if dimension not in gone]
    axes = [
        Axis(
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
    name = base_name(named.call.operator).partition("::")[2]
    sides = next((int(letter) for letter in name if letter in "123"), 3 if "shuffle" in name else None)
    if sides is None or any(len(each.shape) != rank for each in (*named.inputs, *named.outputs)):
        return []
    dimensions = range(min(rank - sides, 1 if name.startswith("grid_sampler") else rank))
    sizes = named.given.get("input_size")
    is_given = isinstance(sizes, tuple) and len(sizes) == rank
    return [
        Division(
            named.all_outputs(),
            tuple(
                Axis(axis.size, axis.inputs, axis.outputs, (("input_size", at),) if is_given else ())
                for at, axis in enumerate(_whole_rank(named, rank, dimensions))
            ),
        )
    ]


def _padding(named: Named) -> list[Division]:
    padded = named.given.get("pad")
    rank = len(named.outputs[0].shape)
    count = len(padded) // 2 if isinstance(padded, tuple) else rank
    return [Division(named.all_outputs(), tuple(_whole_rank(named, rank, range(rank - count))))]


_BY_NAME: dict[str, Rule] = {
    **division_rules.BY_NAME,
    **dict.fromkeys(_OVER_SOME, _over_some),
    "constant_pad_nd": _padding,
}
_BY_PATTERN: list[tuple[tuple[str, ...], Rule]] = [
    *division_rules.BY_PATTERN,
    (_ALONG_ONE, _along_one),
    (_BY_IMAGE, _by_image),
]
