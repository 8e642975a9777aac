"""Chooses contents for tensors whose contents nobody has named: indices that exist, variances above zero."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torchferry import units
from torchferry.errors import InputError
from torchferry.readiness.cases import notation
from torchferry.readiness.cases.model import Case, CaseValue, Draw, TensorContents, TensorInput
from torchferry.readiness.cases.notation import described
from torchferry.readiness.model import TensorSpec
from torchferry.text import Text

_NORMAL = TensorContents(Draw.NORMAL)
_POSITIVE = TensorContents(Draw.UNIFORM, 0.5, 2.0)
_SHARE = TensorContents(Draw.UNIFORM, 0.05, 0.95)
_MASK = TensorContents(Draw.INTS, 0, 2)
_WHOLE = TensorContents(Draw.INTS, -10, 10)
_WHOLE_UNSIGNED = TensorContents(Draw.INTS, 0, 20)

# Arguments that are never negative, whatever the operator: variances and what is made of them. With others a root
# is taken, and a result that is no number everywhere would compare nothing.
_POSITIVE_ARGUMENTS = frozenset(
    [
        "running_var",
        "save_var",
        "save_invstd",
        "rstd",
        "std",
        "invstd",
        "var",
        "exp_avg_sqs",
        "max_exp_avg_sqs",
    ]
)
_COUNTED_FROM_ONE = frozenset(("pivots", "LU_pivots"))  # as LAPACK counts rows
# Operators whose domain is a part of the numbers; their first argument lies in it.
_SHARES = re.compile(
    r"bernoulli|binary_cross_entropy(?!_with_logits)|multinomial|logit$|erfinv|BCELoss$|atanh|acos|asin"
)
_POSITIVE_FIRST = re.compile(r"(^|_)(r?sqrt|log\d*p?|lgamma|digamma|poisson|standard_gamma|pow)_?$")


def filled(case: Case, names: tuple[str, ...] = ()) -> Case:
    """The case with contents for every tensor; `names` are those of the positional arguments, where known."""
    bound = smallest_size(case)
    operator = case.callee.base_name

    def fill(value: CaseValue, name: str, position: int) -> CaseValue:
        if isinstance(value, tuple):
            return tuple(fill(item, name, position) for item in value)
        if not isinstance(value, TensorInput) or value.contents.draw is not Draw.DEFAULT:
            return value
        return replace(value, contents=_contents(value, name, position, operator, bound))

    labels = [*names, *[""] * len(case.args)]
    return replace(
        case,
        args=tuple(fill(value, labels[index], index) for index, value in enumerate(case.args)),
        kwargs=tuple((name, fill(value, name, -1)) for name, value in case.kwargs),
    )


def _contents(tensor: TensorInput, name: str, position: int, operator: str, bound: int) -> TensorContents:
    if tensor.dtype == "bool":
        return _MASK
    if not notation.is_floating(tensor.dtype):
        if bound and name in _COUNTED_FROM_ONE:
            return TensorContents(Draw.INTS, 1, bound + 1)
        if bound:  # beside numbers with fractions, whole ones are most often indices into them
            return TensorContents(Draw.INTS, 0, bound)
        return _WHOLE_UNSIGNED if tensor.dtype in notation.UNSIGNED else _WHOLE
    if _SHARES.search(operator):
        return _SHARE
    if name in _POSITIVE_ARGUMENTS or (position == 0 and _POSITIVE_FIRST.search(operator)):
        return _POSITIVE
    return _NORMAL


def smallest_size(case: Case) -> int:
    """An index below it exists in every dimension of every tensor with fractions; 0 if there is none such."""
    floating = [tensor for tensor in case.tensors if notation.is_floating(tensor.dtype)]
    # a number by itself is indexed like a row of one
    return min((size for tensor in floating for size in tensor.shape or (1,) if size), default=0)


_COPIES = 4  # at least: what is given, on the CPU and on the device, and twice as wide for the reference


def check_fits(tensors: Sequence[TensorInput], memory: int | None = None) -> None:
    """Refuse tensors that this machine's memory, in bytes, can't hold: trying it would take the machine down."""
    memory = _memory() if memory is None else memory
    sizes = [(TensorSpec(each.dtype, (each.span,)).bytes, described(each)) for each in tensors]
    needed = _COPIES * sum(size for size, _ in sizes)
    if memory and needed > memory:
        size, largest = max(sizes)
        raise InputError(
            Text(
                f"{largest}: takes {units.size(size)}; with the copies for comparison the case needs at least "
                f"{units.size(needed)}, and this machine has {units.size(memory)}; give smaller sizes",
                f"{largest}：占用 {units.size(size)}；加上用于比较的副本，该用例至少需要 {units.size(needed)}，"
                f"而本机只有 {units.size(memory)}；请减小尺寸",
            )
        )


def _memory() -> int:
    """What is built in; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def overlaps(tensor: TensorInput) -> bool:
    """Whether two elements share a place in memory, other than by a dimension that repeats its first slice."""
    sizes = zip(tensor.strides, tensor.shape, strict=True)
    steps = sorted((step, size) for step, size in sizes if step and size > 1)
    reach = 0
    for step, size in steps:
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def laid(elements: Any, tensor: TensorInput) -> Any:
    """A torch tensor's elements in memory as `tensor` says, with zeros between them; it must not overlap."""
    memory = elements.new_zeros(tensor.span)
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.strides)
    memory.as_strided(tensor.shape, tensor.strides, tensor.offset)[once] = elements[once]
    return memory
