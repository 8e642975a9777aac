"""Whether a product was computed from inputs with fewer digits, as TF32 and HF32 do: that is a choice, no fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from torchferry.accuracy.judge.execution import execute_doubled, is_floating
from torchferry.accuracy.judge.margins import Compared, digits_of, flat, reduced
from torchferry.accuracy.judge.references import Reference, results_if_any
from torchferry.accuracy.model import Value
from torchferry.observe.operators import find_overload
from torchferry.operators.names import without_overload
from torchferry.text import Text

_FEW = 64  # errors: 1 / sqrt(64) is the scatter of a correlation by chance
_REMAINS = 0.1  # of errors that are explained
_EVEN = 0.58  # of the largest error, root mean square
_LARGEST = 3.0  # of what inputs do that are off by half a unit: a part may be larger than the sum


def is_small_enough(compared: Compared, moved: torch.Tensor) -> bool:
    """Whether the errors have the size of those that inputs with fewer digits make."""
    settings = reduced()
    scale = float(moved.norm()) * 2.0 ** (24 - settings.digits)
    error = float((compared.mine - compared.right).norm())
    return not compared.errors.nonfinite and error <= settings.rms * scale + float(compared.limit.norm())


def is_split(compared: Compared, moved: torch.Tensor, dtype_digits: int) -> bool:
    """Whether a product in half precision errs as if it were the sum of a few rounded parts: without a bias."""
    if compared.errors.nonfinite or compared.errors.bias > 1.0:
        return False
    scale = moved.reshape(-1) * 2.0 ** (24 - dtype_digits)
    error = (compared.mine - compared.right).abs()
    allowed = reduced().half_rms * float(scale.norm()) + _EVEN * float(compared.limit.norm())
    return float(error.norm()) <= allowed and bool((error <= _LARGEST * scale + compared.limit).all())


def is_alike(compared: Compared, reference: Reference, output: int) -> bool:
    """Whether the errors of a result are at the places of those that inputs with fewer digits make."""
    error = compared.mine - compared.right
    others = []
    for digits in (reduced().digits, reduced().digits + 1):
        for to_nearest in (True, False):
            inputs = [
                _narrowed(each, digits, to_nearest) if is_floating(each) else each
                for each in reference.inputs
            ]
            result = reference.execute(inputs)[output]
            if result is not None:
                others.append(flat(result) - compared.right)
    if error.numel() < _FEW:  # by chance, few errors are alike: they must be the same
        left, limit = _REMAINS * float(error.norm()), float(compared.limit.norm())
        return any(float((error - other).norm()) <= left + limit for other in others)
    sizes = [float(error.norm()) * float(other.norm()) for other in others]
    pairs = zip(others, sizes, strict=True)
    return any(
        (float(error @ other) / size if size else 0.0) >= reduced().correlation for other, size in pairs
    )


def _narrowed(tensor: torch.Tensor, digits: int, to_nearest: bool) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_complex(_narrowed(torch.view_as_real(tensor), digits, to_nearest))
    mantissa, exponent = torch.frexp(tensor)
    scaled = mantissa * 2.0**digits
    return torch.ldexp(scaled.round() if to_nearest else scaled.trunc(), exponent - digits)


# A number that a kernel has taken a little wrongly, in few digits: no element shows it, but all of them lean one way.

_SCALE = "scale"
_STEP = 2.0**-8  # by which the number is changed, to see how results go with it
_SURE = 20.0  # standard deviations: elements of a row share what was rounded on the way
_FEWEST = 64  # elements of which that can be told
_OWN = 4.0  # times as far as the CPU's own kernel

_LEANS_AS_IF = Text(
    "no single element shows it, but all together look as if {name} were {value:.6g}, not {given:.6g}",
    "单个元素看不出，但全部元素整体上如同 {name} 为 {value:.6g}，而不是 {given:.6g}",
)


def leaning(reference: Reference, output: int, result: Callable[[], torch.Tensor]) -> Text | None:
    """What a result with few digits leans to, if that is more than a number rounded to its dtype would explain."""
    given = _scale(reference)
    right = reference.right[output]
    digits = digits_of(reference.call.outputs[output].dtype)
    if given is None or right is None or digits is None or right.numel() < _FEWEST:
        return None
    least = 2.0**-(digits.digits)
    changed = _with_argument(reference, output, _SCALE, given * (1.0 + _STEP))
    if changed is None:
        return None
    direction = (changed - right) / _STEP  # how the right result goes with the number, per its own size
    found = _leaning(result(), right, direction)
    if found is None or abs(found[0]) <= max(least, _SURE * found[1]):
        return None
    host = reference.of_host[output]
    own = _leaning(host, right, direction) if host is not None and host.shape == right.shape else None
    if own is not None and abs(found[0]) <= _OWN * abs(own[0]):
        return None
    return _LEANS_AS_IF.format(name=_SCALE, value=given * (1.0 + found[0]), given=given)


def _scale(reference: Reference) -> float | None:
    """The number that is asked about: by what attention multiplies its products; None: it is no attention."""
    if "attention" not in without_overload(reference.call.operator):
        return None
    given: Any = dict(reference.call.arguments).get(_SCALE)
    if given is not None:
        return given if isinstance(given, float) else None
    shapes = {record.name: record.shape for record in reference.call.inputs}
    return 1.0 / math.sqrt(shapes["input/query"][-1]) if "input/query" in shapes else None


def _with_argument(reference: Reference, output: int, name: str, value: Value) -> torch.Tensor | None:
    """What a result would be in double precision if an argument had another value; None: there is no such result."""
    call = reference.call
    changed = replace(call, arguments=tuple({**dict(call.arguments), name: value}.items()))
    found = results_if_any(call, lambda: execute_doubled(changed, reference.inputs))[output]
    right = reference.right[output]
    return found if found is not None and right is not None and found.shape == right.shape else None


def _leaning(
    result: torch.Tensor, right: torch.Tensor, direction: torch.Tensor
) -> tuple[float, float] | None:
    """How much of a direction is in the errors, and the deviation of that, by what else is in them."""
    errors, along = flat(result).double() - flat(right).double(), flat(direction).double()
    finite = errors.isfinite() & along.isfinite()
    errors, along = errors[finite], along[finite]
    length = float(along @ along)
    if not length or errors.numel() < _FEWEST:
        return None
    share = float(errors @ along) / length
    rest = errors - share * along
    return share, math.sqrt(float(rest @ rest) / errors.numel() / length)


# What a call would have given if its kernel had taken an argument for another value, or had read an input before it was
# there: explanations of wrong results.

# Of an epsilon: where it is forgotten, or another one built in.
_FACTORS = (0.0, 1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3)
_EPSILONS = ("eps", "epsilon")
_WORDS = {"approximate": ("none", "tanh")}
_FLAGS = ("align_corners", "count_include_pad", "ceil_mode", "is_causal", "causal")
_CORRECTION = "correction"
_BATCH_NORMS = ("aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::cudnn_batch_norm")

_AS_IF = Text("as if {name} were {value}, not {given}", "结果如同 {name} 为 {value}，而不是 {given}")
_NOT_THERE = Text(
    "as if {name} were 0 from index {first} of its first dimension on: not ready when the kernel read it",
    "结果如同 {name} 自第一维的 {first} 起为 0：kernel 读取时尚未就绪",
)
_FROM_N = Text("as if the variance were divided by n instead of n - 1", "结果如同方差除以 n，而不是 n - 1")


def misreadings(reference: Reference, output: int) -> Iterator[tuple[Text, torch.Tensor]]:
    """Explanations, with the result that each would have given in double precision."""
    for name, value, other in _others(reference.call.operator, dict(reference.call.arguments)):
        found = _with_argument(reference, output, name, other)
        if found is not None:
            yield _AS_IF.format(name=name, value=_shown(other), given=_shown(value)), found
    yield from _from_all(reference, output)


def unread_inputs(
    reference: Reference, output: int, wrong: torch.Tensor
) -> Iterator[tuple[Text, torch.Tensor]]:
    """The same for inputs whose last rows were not there, where the last rows of a result are wrong.

    A result that would be 0 there explains nothing: it may as well not have been written.
    """
    shape = reference.call.outputs[output].shape
    if not shape or wrong.numel() != math.prod(shape) or not bool(wrong.any()):
        return
    rows = wrong.reshape(shape[0], -1).any(1)
    first = int(rows.nonzero()[0])
    if not bool(rows[first:].all()):
        return
    for at, (record, tensor) in enumerate(zip(reference.call.inputs, reference.inputs, strict=True)):
        if not tensor.is_floating_point() or tensor.shape[:1] != shape[:1] or not bool(tensor[first:].any()):
            continue
        inputs = list(reference.inputs)
        inputs[at] = tensor.clone()
        inputs[at][first:] = 0
        found = results_if_any(reference.call, partial(reference.execute, inputs))[output]
        is_fitting = found is not None and tuple(found.shape) == shape
        if found is not None and is_fitting and float((found[first:] != 0).double().mean()) > 0.5:
            yield _NOT_THERE.format(name=record.name, first=first), found


def _others(operator: str, given: dict[str, Value]) -> Iterator[tuple[str, Any, Value]]:
    """Arguments that kernels are known to take wrongly: name, what it is, what it may have been taken for."""
    overload = find_overload(operator)
    for argument in overload._schema.arguments if overload is not None else ():
        name = argument.name
        value: Any = given.get(name, argument.default_value)
        if name in _EPSILONS and isinstance(value, float):
            yield from ((name, value, value * factor) for factor in _FACTORS)
        elif name in _WORDS:
            yield from ((name, value, other) for other in _WORDS[name] if other != value)
        elif name in _FLAGS and isinstance(value, bool):
            yield name, value, not value
        elif name == _CORRECTION and isinstance(value, (int, float)):
            yield from ((name, value, other) for other in (value - 1, value + 1) if other >= 0)


def _from_all(reference: Reference, output: int) -> Iterator[tuple[Text, torch.Tensor]]:
    """A batch norm's running variance, which PyTorch takes from n - 1."""
    call, right = reference.call, reference.right[output]
    is_batch_norm = without_overload(call.operator) in _BATCH_NORMS
    if not is_batch_norm or call.outputs[output].name != "output/running_var":
        return
    inputs = {record.name: tensor for record, tensor in zip(call.inputs, reference.inputs, strict=True)}
    source, old = inputs.get("input/input"), inputs.get("input/running_var")
    momentum = dict(call.arguments).get("momentum")
    if source is None or old is None or right is None or not isinstance(momentum, float):
        return
    count = math.prod(source.shape) / source.shape[1]
    kept = old * (1.0 - momentum)
    yield _FROM_N, kept + (right - kept) * (count - 1.0) / count


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
