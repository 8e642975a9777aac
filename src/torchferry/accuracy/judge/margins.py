"""How far a result may be from the right one, by class of operator and dtype; the figures are in margins.toml."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.judge.execution import is_floating
from torchferry.accuracy.model import Call
from torchferry.accuracy.native.errors import CErrorSums, CLimits, different_values, error_sums
from torchferry.operators.names import without_overload
from torchferry.vendors.schema import toml_module

_FILE = Path(__file__).with_name("margins.toml")


@dataclass(frozen=True)
class Margins:
    """Of one class of operators; the fields are explained in the file."""

    name: str
    rounding: float
    compute: float
    growth: float
    margin: float
    pointwise: bool
    reduced: bool = False
    absolute: bool = False
    inner: float = 0.0
    inner_sums: float = 0.0
    numbers: bool = False
    addend: bool = False


@dataclass(frozen=True)
class Views:
    """From which figures a result is judged."""

    rms: float
    rms_compute: float
    rms_rounding: float
    bias_rounding: float
    bias_compute: float
    deviations: float
    least: int
    fault: float
    complex_compute: float


@dataclass(frozen=True)
class Reduced:
    """Products of inputs that were cut to fewer digits."""

    digits: int
    rms: float
    half_rms: float
    correlation: float


@dataclass(frozen=True)
class Digits:
    """Of a dtype: those of its numbers, and those that kernels compute with."""

    digits: int
    compute: int


@cache
def _data() -> dict[str, Any]:
    found: dict[str, Any] = toml_module().loads(_FILE.read_text("utf-8"))
    return found


@cache
def margins_of(operator: str, variant: str = "") -> Margins:
    """For aten::add.Tensor; `variant` (alpha, accumulate) counts first. The most precise pattern counts."""
    plain = operator.partition("::")[2]
    base = plain.partition(".")[0]
    for wanted in filter(None, (f"*.{variant}" if variant else "", plain, base)):
        exact = [name for name, entry in _data()["class"].items() if wanted in entry["operators"]]
        if exact:
            return _margins(exact[0])
    fitting = [
        (len(pattern.replace("*", "")), name)
        for name, entry in _data()["class"].items()
        for pattern in entry["operators"]
        if fnmatchcase(plain, pattern) or fnmatchcase(base, pattern)
    ]
    return _margins(max(fitting, key=lambda each: each[0])[1])


@cache
def _margins(name: str) -> Margins:
    entry = {key: value for key, value in _data()["class"][name].items() if key != "operators"}
    return Margins(name, **entry)


@cache
def views() -> Views:
    """The same for all operators."""
    return Views(**_data()["views"])


@cache
def reduced() -> Reduced:
    """What TF32 and its like may do."""
    return Reduced(**_data()["reduced"])


@cache
def digits_of(dtype: str) -> Digits | None:
    """None: it holds no fractions."""
    entry = _data()["dtypes"].get(dtype)
    return Digits(**entry) if entry else None


# Holds a result against the right one: the largest error, its mean square and its bias, in shares of what is normal.

SMALLEST = {"float16": 2.0**-24, "float8_e4m3fn": 2.0**-9, "float8_e5m2": 2.0**-16}
_SMALLEST_NORMAL = 2.0**-126
_SMALLEST_DOUBLE = 2.0**-1022
_COUNTED = 1 << 16  # elements in which different values are counted
_EXACTLY = 1.0 + 2.0**-20  # half a unit is a bound that is reached


@dataclass(frozen=True)
class Errors:
    """Each figure in shares of its limit: up to 1 is normal."""

    largest: float = 0.0
    mean_square: float = 0.0
    bias: float = 0.0
    relative: float = 0.0  # norm of the error over the norm of what is right
    nonfinite: int = 0  # elements that are nan or infinite where they should not be, or the other way round

    @property
    def worst(self) -> float:
        """The largest of the shares; infinite where an element is not finite that should be."""
        return math.inf if self.nonfinite else max(self.largest, self.mean_square, self.bias)

    def excused_by(self, others: Sequence[Errors], margin: float) -> Errors:
        """With limits that are widened, where another computation is beyond them, to `margin` times what it has."""

        def widened(name: str) -> float:
            shares: list[float] = [getattr(each, name) for each in others]
            return max([1.0, *(margin * share for share in shares if 1.0 < share < math.inf)])

        is_whole = math.isinf(self.largest)  # of whole numbers, the share of wrong ones counts
        is_excused = any(
            math.isinf(each.largest) and self.relative <= margin * each.relative for each in others
        )
        return Errors(
            0.0 if is_whole and is_excused else self.largest / widened("largest"),
            self.mean_square / widened("mean_square"),
            self.bias / widened("bias"),
            self.relative,
            0 if any(self.nonfinite <= each.nonfinite for each in others) else self.nonfinite,
        )


@dataclass(frozen=True)
class _Elements:
    """A result, flat and in double precision, beside the right one and the limit of each element."""

    mine: torch.Tensor
    right: torch.Tensor
    limit: torch.Tensor


class Compared:
    """How far a result is off; what is said of its single elements is made when it is asked for."""

    def __init__(self, errors: Errors, elements: Callable[[], _Elements]) -> None:
        self.errors = errors
        self._make = elements

    @cached_property
    def _elements(self) -> _Elements:
        return self._make()

    @property
    def mine(self) -> torch.Tensor:
        """The result, flat and in double precision."""
        return self._elements.mine

    @property
    def right(self) -> torch.Tensor:
        """What it should be."""
        return self._elements.right

    @property
    def limit(self) -> torch.Tensor:
        """How far each element may be off."""
        return self._elements.limit

    def with_limit(self, limit: torch.Tensor) -> Compared:
        """The same beside another limit."""
        return Compared(self.errors, lambda: _Elements(self.mine, self.right, limit))

    @property
    def wrong(self) -> torch.Tensor:
        """Which elements are beyond their limit."""
        error = (self.mine - self.right).abs()
        return ~(error <= self.limit) & ~_same_nonfinite(self.mine, self.right)


@dataclass(frozen=True)
class Terms:
    """What the limit of a result depends on besides its class."""

    count: float = 1.0  # that are added up
    is_sum: bool = False  # it has fewer elements than what went in
    addend: torch.Tensor | None = None  # what is added to a product
    input_digits: int = 24  # the fewest of an input's dtype
    tiny: float = 0.0  # what is lost where intermediate results are too small for the dtype
    least: float = 0.0  # what moved inputs do to any element, at least
    trust: float = (
        1.0  # the share of what may be computed wrongly that is left: the rest is what is held against
    )


def compare(
    result: torch.Tensor,
    right: torch.Tensor,
    moved: torch.Tensor | None,
    dtype: str,
    margins: Margins,
    terms: Terms,
) -> Compared:
    """`moved` is the sensitivity of each element; None: it is not known yet, and taken for as small as it can be."""
    digits = digits_of(dtype)
    if digits is None:  # every bit counts; double precision would not hold all of those of 64
        wrong = int((result != right).sum())
        errors = Errors(largest=math.inf if wrong else 0.0, relative=wrong / max(1, result.numel()))
        return Compared(errors, lambda: _Elements(flat(result), flat(right), torch.zeros_like(flat(right))))
    share = _share(margins, terms, digits, right.is_complex())

    def elements() -> tuple[_Elements, torch.Tensor, _Limits]:
        return _by_element(result, right, moved, dtype, share, margins, terms)

    quick = _errors_in_one_pass(result, right, moved, dtype, share, margins, terms)
    if quick is not None:
        return Compared(quick, lambda: elements()[0])
    found, rounded, limits = elements()
    return Compared(_errors(found.mine, found.right, rounded, limits, dtype), lambda: found)


def _by_element(
    result: torch.Tensor,
    right: torch.Tensor,
    moved: torch.Tensor | None,
    dtype: str,
    share: float,
    margins: Margins,
    terms: Terms,
) -> tuple[_Elements, torch.Tensor, _Limits]:
    """Also what is right, rounded, and the parts of the limits."""
    digits = digits_of(dtype)
    assert digits is not None
    if moved is not None and right.is_complex():
        moved = moved.unsqueeze(-1).expand(*moved.shape, 2)
    half = _half_unit(flat(right), dtype, digits.digits) * margins.rounding
    before = torch.zeros_like(half)
    if terms.addend is not None and digits.digits < digits.compute:
        before = _half_unit(flat(right - terms.addend), dtype, digits.digits)
    # the parts of a complex number err in shares of the whole: each of them is a difference of products
    magnitude = right.abs().unsqueeze(-1).expand(*right.shape, 2) if right.is_complex() else right.abs()
    mine, least = flat(result), (flat(magnitude) * UNIT).clamp_min_(terms.least)
    right = flat(right)
    own = least if moved is None else torch.maximum(flat(moved), least)
    computed = own.mul(share).add_(terms.tiny).nan_to_num_(0.0, 0.0, 0.0)
    limits = _Limits(half, before, computed, (half + before) * _EXACTLY + computed)
    rounded = right.to(_real(dtype)).to(torch.float64)
    return _Elements(mine, right, limits.whole), rounded, limits


_NATIVE = ("float32", "float16", "bfloat16")
_REAL = {torch.float32: "float32", torch.float64: "float64"}


def _errors_in_one_pass(
    result: torch.Tensor,
    right: torch.Tensor,
    moved: torch.Tensor | None,
    dtype: str,
    share: float,
    margins: Margins,
    terms: Terms,
) -> Errors | None:
    """By a compiled kernel; None where it can't be done so: no compiler, another dtype, numbers that are not finite."""
    digits = digits_of(dtype)
    is_for_it = dtype in _NATIVE and right.dtype in _REAL and str(result.dtype) == f"torch.{dtype}"
    if not is_for_it or digits is None or not result.numel() or result.shape != right.shape:
        return None
    before = right - terms.addend if terms.addend is not None and digits.digits < digits.compute else None
    lying = _in_one_order(result, right, moved, before)
    places = [0 if each is None else each.data_ptr() for each in lying]
    kind, count = _REAL[right.dtype], result.numel()
    limits = _c_limits(dtype, share, margins, terms)
    sums = error_sums((places[0], dtype), (places[1], kind), places[2], places[3], count, limits)
    if sums is None or sums.nonfinite:
        return None
    step = -(-count // _COUNTED)
    different = different_values(places[1], kind, count, step) * min(step, count)
    return _errors_of(sums, different)


def _in_one_order(first: torch.Tensor, *others: torch.Tensor | None) -> list[torch.Tensor | None]:
    """Tensors of one shape, so that what belongs together lies at the same place of dense memory."""
    tensors = [first, *(each.expand(first.shape) if each is not None else None for each in others)]
    if _is_dense(first) and all(each is None or each.stride() == first.stride() for each in tensors):
        return tensors
    return [each.contiguous() if each is not None else None for each in tensors]


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements fill memory without gaps, in any order of dimensions."""
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if step != expected:
                return False
            expected *= size
    return True


def _c_limits(dtype: str, share: float, margins: Margins, terms: Terms) -> CLimits:
    digits, view = digits_of(dtype), views()
    assert digits is not None
    return CLimits(
        digits=digits.digits,
        least_half=SMALLEST[dtype] / 2 if dtype in SMALLEST else smallest_normal(dtype),
        half_of_zero=2.0 ** (-digits.digits - 1),
        rounding=margins.rounding,
        share=share,
        tiny=terms.tiny,
        unit=UNIT,
        floor=terms.least,
        exactly=_EXACTLY,
        smallest_normal=smallest_normal(dtype),
        largest_finite=torch.finfo(_real(dtype)).max,
        rms_compute=view.rms_compute,
        rms_rounding=view.rms_rounding,
        bias_rounding=view.bias_rounding,
        bias_compute=view.bias_compute,
    )


def _errors_of(sums: CErrorSums, different: float) -> Errors:
    """The views on the sums of a kernel, as `_errors` has them."""
    view, count = views(), sums.counted
    relative = (
        math.sqrt(sums.error_squares / sums.right_squares)
        if sums.right_squares
        else (math.inf if sums.error_squares else 0.0)
    )
    if different < view.least or not count:
        return Errors(sums.largest, 0.0, 0.0, relative)
    allowed = (view.rms + view.deviations / 2 / math.sqrt(different)) * math.sqrt(sums.expected / count)
    mean_square = math.sqrt(sums.found / count) / allowed if allowed else 0.0
    normal, bias = sums.allowed / count, 0.0
    for total, squares in ((sums.away, sums.away_squares), (sums.along, sums.along_squares)):
        spread = math.sqrt(max(0.0, squares - total * total / count) / max(1.0, count - 1))
        bias = max(bias, abs(total / count) / (normal + view.deviations * spread / math.sqrt(different)))
    return Errors(sums.largest, mean_square, bias, relative)


def _share(margins: Margins, terms: Terms, digits: Digits, is_complex: bool) -> float:
    growth = 1.0 + margins.growth * math.sqrt(terms.count)
    compute = (
        max(margins.compute, views().complex_compute) if is_complex and margins.compute else margins.compute
    )
    share = compute * growth * 2.0 ** (24 - digits.compute)
    if digits.digits < digits.compute:
        share += margins.inner * 2.0 ** (24 - digits.digits)
    if terms.is_sum and terms.input_digits < digits.compute:
        share += margins.inner_sums * 2.0 ** (24 - terms.input_digits)
    return share * terms.trust


@dataclass(frozen=True)
class _Limits:
    """How far each element may be off: the parts, and the whole."""

    half: torch.Tensor  # of the last rounding
    before: torch.Tensor  # of a rounding before it
    computed: torch.Tensor
    whole: torch.Tensor

    def at(self, chosen: torch.Tensor) -> _Limits:
        return _Limits(self.half[chosen], self.before[chosen], self.computed[chosen], self.whole[chosen])


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision, in one dimension; of complex numbers both parts, one after the other."""
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.to(torch.float64).reshape(-1)


def _real(dtype: str) -> torch.dtype:
    real = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}.get(dtype, dtype)
    found: torch.dtype = getattr(torch, real)
    return found


def _half_unit(right: torch.Tensor, dtype: str, digits: int) -> torch.Tensor:
    """Of the last place of a dtype at these numbers; devices may take the smallest ones for zero."""
    exponent = torch.frexp(right).exponent.to(torch.float64)
    unit = torch.exp2(exponent - digits - 1)
    return unit.clamp_min_(SMALLEST[dtype] / 2 if dtype in SMALLEST else smallest_normal(dtype))


def smallest_normal(dtype: str) -> float:
    """Devices may take numbers for zero that are smaller; those of half precision are not."""
    if dtype in SMALLEST:
        return 0.0
    return _SMALLEST_DOUBLE if dtype in ("float64", "complex128") else _SMALLEST_NORMAL


def _same_nonfinite(mine: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return (mine == right) | (mine.isnan() & right.isnan())


def _errors(
    mine: torch.Tensor, right: torch.Tensor, rounded: torch.Tensor, limits: _Limits, dtype: str
) -> Errors:
    finite = mine.isfinite() & right.isfinite()
    # one that is nearly too large for the dtype may be rounded up to infinity
    overflows = (
        mine.isinf() & (mine * right > 0) & (right.abs() + limits.whole >= torch.finfo(_real(dtype)).max)
    )
    right_as_it_is = _same_nonfinite(mine, right) | _same_nonfinite(mine, rounded) | overflows
    nonfinite = int((~finite & ~right_as_it_is).sum())
    if not bool(finite.all()):
        mine, right, rounded, limits = mine[finite], right[finite], rounded[finite], limits.at(finite)
    if not mine.numel():
        return Errors(nonfinite=nonfinite)
    error = mine - right
    norm = float(right.norm())
    relative = float(error.norm()) / norm if norm else (math.inf if bool(error.any()) else 0.0)
    # A result that is exact where it overflows is infinite: its neighbours are the largest finite numbers.
    rounded = torch.where(rounded.isfinite(), rounded, right)
    # smaller ones may be taken for zero, which is a bias
    normal = (right == 0) | (right.abs() >= smallest_normal(dtype))
    if bool(normal.all()):
        mean_square, bias = _means(mine, right, rounded, limits)
    else:
        mean_square, bias = _means(mine[normal], right[normal], rounded[normal], limits.at(normal))
    return Errors(float((error.abs() / limits.whole).max()), mean_square, bias, relative, nonfinite)


def _means(
    mine: torch.Tensor, right: torch.Tensor, rounded: torch.Tensor, limits: _Limits
) -> tuple[float, float]:
    view = views()
    different = _different(right)
    if different < view.least:
        return 0.0, 0.0
    parts = (rounded - right, view.rms_compute * limits.computed, view.rms_rounding * limits.before)
    expected = sum(part.square() for part in parts) / limits.whole.square()
    found = ((mine - right) / limits.whole).square().mean()
    allowed = (view.rms + view.deviations / 2 / math.sqrt(different)) * math.sqrt(float(expected.mean()))
    mean_square = math.sqrt(float(found)) / allowed if allowed else 0.0
    away = (mine - rounded) / limits.whole
    rounding = view.bias_rounding * (limits.half + limits.before)
    normal = float(((rounding + view.bias_compute * limits.computed) / limits.whole).mean())
    bias = 0.0
    for direction in (away, away * right.sign()):
        chance = view.deviations * float(direction.std()) / math.sqrt(different)
        bias = max(bias, abs(float(direction.mean())) / (normal + chance))
    return mean_square, bias


def _different(right: torch.Tensor) -> int:
    """How many different values there are: equal ones err alike, and tell no more than one of them."""
    if right.numel() <= _COUNTED:
        return int(torch.unique(right).numel())
    sample = right[:: -(-right.numel() // _COUNTED)]
    return int(torch.unique(sample).numel() * (right.numel() / sample.numel()))


# What an operator makes of inputs that are slightly off: the error that a correct kernel can't avoid, element by element;
# and how many terms it adds up.

UNIT = 2.0**-24  # half a unit in the last place of single precision, relative
_SAMPLES = 3
FLOOR = 0.35  # of the mean over the tensor: by chance, a few samples can be small in one element
_SEED = 20260
_PRIME, _PLACES_APART = 1_000_003, 123_457
Outputs = list[torch.Tensor | None]
Execute = Callable[[Sequence[torch.Tensor], Mapping[str, float]], Outputs]


def sensitivity(
    call: Call, inputs: Sequence[torch.Tensor], right: Outputs, execute: Execute, margins: Margins
) -> Outputs:
    """How far each element of the results moves when every input is off by `UNIT` of itself, root mean square."""
    squares: list[torch.Tensor | None] = [
        torch.zeros_like(tensor, dtype=torch.float64) if tensor is not None and is_floating(tensor) else None
        for tensor in right
    ]
    numbers = [name for name, value in call.arguments if isinstance(value, float)] if margins.numbers else []
    signs: Iterable[Factors] = (
        _signs_by_argument(call, numbers) if margins.pointwise else random_signs(inputs)
    )
    samples = 0
    for factors in signs:
        of_numbers = dict(zip(numbers, factors[len(inputs) :], strict=False))
        others = [moved_by(tensor, factor) for tensor, factor in zip(inputs, factors, strict=False)]
        moved = execute(others, {name: 1.0 + UNIT * float(sign) for name, sign in of_numbers.items()})
        samples += 1
        for total, result, first in zip(squares, moved, right, strict=True):
            if total is not None and result is not None and first is not None:
                total += (result - first).abs().square().nan_to_num_(0.0, 0.0, 0.0)
    found: Outputs = []
    for total in squares:
        if total is None:
            found.append(None)
            continue
        deviation = total.div_(samples).sqrt_()
        if not margins.pointwise and deviation.numel():
            deviation.clamp_min_(FLOOR * float(deviation.square().mean().sqrt()))
        found.append(deviation)
    return found


Factors = list[torch.Tensor | float]


def moved_by(tensor: torch.Tensor, factor: torch.Tensor | float) -> torch.Tensor:
    """An input of which each element is off by `UNIT` of itself."""
    if not is_floating(tensor):
        return tensor
    if isinstance(factor, torch.Tensor) and not tensor.is_complex():
        return torch.addcmul(tensor, tensor, factor, value=UNIT)
    return tensor * (1.0 + UNIT * factor)


def _signs_by_argument(call: Call, numbers: list[str]) -> list[Factors]:
    """Where elements do not mix: one sign for each argument, in combinations whose effects add up in squares."""
    arguments = [*(record.name.split("/")[1] for record in call.inputs), *numbers]
    order = list(dict.fromkeys(arguments))
    size = 1 << max(0, math.ceil(math.log2(max(1, len(order)))))
    return [
        [1.0 if bin(row & order.index(name)).count("1") % 2 == 0 else -1.0 for name in arguments]
        for row in range(size)
    ]


def random_signs(inputs: Sequence[torch.Tensor]) -> Iterator[Factors]:
    """One sample after the other: they take as much memory as the inputs."""
    for sample in range(_SAMPLES):
        yield [
            _signs_of(tensor.shape, _PLACES_APART * (sample * len(inputs) + at))
            if is_floating(tensor)
            else 1.0
            for at, tensor in enumerate(inputs)
        ]


@cache
def _signs() -> torch.Tensor:
    """So many that rows of tensors, which have rounder sizes, do not begin with the same ones."""
    generator = torch.Generator().manual_seed(_SEED)
    drawn = torch.randint(0, 2, (_PRIME,), generator=generator, dtype=torch.int8)
    return drawn.mul_(2).sub_(1).double()


def _signs_of(shape: torch.Size, start: int) -> torch.Tensor:
    table, start, count = _signs(), start % _PRIME, shape.numel()
    if start + count <= _PRIME:
        return table[start : start + count].view(shape)
    return table.repeat(-(-(start + count) // _PRIME))[start : start + count].view(shape)


def added_up(call: Call, output: int, margins: Margins) -> float:
    """How many terms one element of a result is the sum of, at most."""
    if margins.pointwise:
        return 1.0
    base = without_overload(call.operator).partition("::")[2]
    sizes = [math.prod(record.shape) for record in call.inputs]
    if "convolution_backward" in base:
        return _of_convolution_backward(call, output)
    if "conv" in base and len(call.inputs) > 1:
        weight = call.inputs[1].shape
        return max(1.0, math.prod(weight) / max(1, min(weight[:2])))
    whole = [
        math.prod(record.shape)
        for record in call.inputs
        if not record.dtype.startswith(("float", "bfloat", "complex"))
    ]
    results = [math.prod(record.shape) or 1 for record in call.outputs] or [1]
    if margins.reduced and len(sizes) > 1:
        largest = sorted(sizes)[-2:]
        return max(1.0, math.sqrt(largest[0] * largest[1] / results[0]))
    widest = max((size for record in call.inputs for size in record.shape), default=1)
    return max([1.0, max(sizes, default=1) / min(results), widest, *whole])


def work_of(call: Call, margins: Margins) -> float:
    """About how many numbers a call multiplies."""
    return sum(
        added_up(call, at, margins) * math.prod(record.shape)
        for at, record in enumerate(call.outputs)
        if record.offset is not None
    )


def _of_convolution_backward(call: Call, output: int) -> float:
    gradient, weight = call.inputs[0].shape, call.inputs[2].shape if len(call.inputs) > 2 else (1, 1)
    of_input = math.prod(weight) / max(1, min(weight[:2]))
    of_weight = math.prod(gradient) / max(1, gradient[1] if len(gradient) > 1 else 1)
    record = call.outputs[output]
    is_input = record.name == "output/output_0" and record.shape == call.inputs[1].shape
    return max(1.0, of_input if is_input else of_weight)
