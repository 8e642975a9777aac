"""Chooses contents for tensors whose contents nobody has named: indices that exist, variances above zero."""

from __future__ import annotations

import re
from dataclasses import replace

from torchferry.ops.cases import dtypes
from torchferry.ops.cases.model import Case, CaseValue, Contents, Draw, TensorInput

_NORMAL = Contents(Draw.NORMAL)
_POSITIVE = Contents(Draw.UNIFORM, 0.5, 2.0)
_SHARE = Contents(Draw.UNIFORM, 0.05, 0.95)
_MASK = Contents(Draw.INTS, 0, 2)
_WHOLE = Contents(Draw.INTS, -10, 10)
_WHOLE_UNSIGNED = Contents(Draw.INTS, 0, 20)

# Arguments that are never negative, whatever the operator: variances and what is made of them. With others a root
# is taken, and a result that is no number everywhere would compare nothing.
_POSITIVE_ARGUMENTS = frozenset(
    (
        "running_var",
        "save_var",
        "save_invstd",
        "rstd",
        "std",
        "invstd",
        "var",
        "exp_avg_sqs",
        "max_exp_avg_sqs",
    )
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


def _contents(tensor: TensorInput, name: str, position: int, operator: str, bound: int) -> Contents:
    if tensor.dtype == "bool":
        return _MASK
    if not dtypes.is_floating(tensor.dtype):
        if bound and name in _COUNTED_FROM_ONE:
            return Contents(Draw.INTS, 1, bound + 1)
        if bound:  # beside numbers with fractions, whole ones are most often indices into them
            return Contents(Draw.INTS, 0, bound)
        return _WHOLE_UNSIGNED if tensor.dtype in dtypes.UNSIGNED else _WHOLE
    if _SHARES.search(operator):
        return _SHARE
    if name in _POSITIVE_ARGUMENTS or (position == 0 and _POSITIVE_FIRST.search(operator)):
        return _POSITIVE
    return _NORMAL


def smallest_size(case: Case) -> int:
    """An index below it exists in every dimension of every tensor with fractions; 0 if there is none such."""
    floating = [tensor for tensor in case.tensors if dtypes.is_floating(tensor.dtype)]
    # a number by itself is indexed like a row of one
    return min((size for tensor in floating for size in tensor.shape or (1,) if size), default=0)
