"""The figures, computed slowly and obviously: one pair of exact fractions after the other."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import torch

FLOATS = (
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
)  # fmt: skip
INTEGERS = ("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
COMPLEX = ("complex32", "complex64", "complex128")
Number = int | float


def tensor_of(data: bytes, dtype: str) -> torch.Tensor:
    """Bytes as PyTorch sees them."""
    if dtype == "bool":
        data = bytes(byte & 1 for byte in data)
    return torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype)) if data else torch.empty(0)


def values(data: bytes, dtype: str) -> list[Number]:
    """The elements; of complex ones both components."""
    tensor = tensor_of(data, dtype)
    if not tensor.numel():
        return []
    if dtype in ("uint16", "uint32", "uint64"):
        form = {"uint16": "H", "uint32": "I", "uint64": "Q"}[dtype]
        return list(struct.unpack(f"={tensor.numel()}{form}", data))
    if tensor.is_complex():
        half = dtype == "complex32"
        tensor = tensor_of(data, "float16") if half else torch.view_as_real(tensor).reshape(-1)
    return (
        tensor.double().tolist()
        if tensor.is_floating_point()
        else tensor.int().tolist()
        if dtype == "bool"
        else tensor.tolist()
    )


def statistics(data: bytes, dtype: str) -> dict[str, float]:
    """All but the checksum."""
    elements = values(data, dtype)
    finite = [Fraction(x) for x in elements if math.isfinite(x)]
    mean = sum(finite, Fraction()) / len(finite) if finite else Fraction()
    square = sum((x * x for x in finite), Fraction()) / len(finite) if finite else Fraction()
    return {
        "count": len(elements),
        "nans": sum(math.isnan(x) for x in elements),
        "infinities": sum(math.isinf(x) for x in elements),
        "zeros": sum(x == 0 for x in elements),
        "minimum": float(min(finite, default=0)),
        "maximum": float(max(finite, default=0)),
        "mean": float(mean),
        "rms": root(square),
    }


def root(x: Fraction) -> float:
    """The square root of a number that may be too large or too small for a float."""
    if x == 0:
        return 0.0
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    shift -= shift % 2
    scaled = x / Fraction(2) ** shift
    return bounded(Fraction(math.sqrt(scaled)) * Fraction(2) ** (shift // 2))


def bounded(x: Fraction) -> float:
    """Infinite where a float can't hold it."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def same(x: Number, y: Number) -> bool:
    """nan is nan, 0 is -0."""
    return x == y or (x != x and y != y)


def differences(mine: bytes, golden: bytes, mine_dtype: str, golden_dtype: str) -> dict[str, float]:
    """All figures of Metrics."""
    m, g = values(mine, mine_dtype), values(golden, golden_dtype)
    pairs = list(zip(m, g, strict=True))
    finite = [(Fraction(x), Fraction(y)) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
    found: dict[str, float] = {
        "count": len(m),
        "equal": sum(same(x, y) for x, y in pairs),
        "nans": sum(x != x for x in m),
        "infinities": sum(math.isinf(x) for x in m),
        "zeros": sum(x == 0 for x in m),
        "golden_zeros": sum(y == 0 for y in g),
        "wrong_zeros": sum(y == 0 and x != 0 for x, y in finite),
        "wrong_nonfinite": sum(
            not same(x, y) for x, y in pairs if not (math.isfinite(x) and math.isfinite(y))
        ),
        "worst": worst(pairs) // (2 if golden_dtype in COMPLEX else 1),
        "within_thousandth": share(pairs, 1e-3),
        "within_five_thousandths": share(pairs, 5e-3),
    }
    return found | (errors(finite, golden_dtype) if finite else {})


def worst(pairs: list[tuple[Number, Number]]) -> int:
    """The first that differs in kind, else the first of the largest differences."""
    kinds = [
        at
        for at, (x, y) in enumerate(pairs)
        if not (math.isfinite(x) and math.isfinite(y)) and not same(x, y)
    ]
    if kinds:
        return kinds[0]
    sizes = [
        float(bounded(abs(Fraction(x) - Fraction(y)))) if math.isfinite(x) and math.isfinite(y) else 0.0
        for x, y in pairs
    ]
    return sizes.index(max(sizes)) if any(sizes) else -1


def share(pairs: list[tuple[Number, Number]], limit: float) -> float:
    """Of the elements that are as good as equal."""
    if not pairs:
        return math.nan
    return sum(same(x, y) or is_near(x, y, limit) for x, y in pairs) / len(pairs)


def is_near(x: Number, y: Number, limit: float) -> bool:
    """Relative to golden."""
    if not (math.isfinite(x) and math.isfinite(y)) or y == 0:
        return False
    return bounded(abs((Fraction(x) - Fraction(y)) / Fraction(y))) < limit


def errors(finite: list[tuple[Fraction, Fraction]], golden_dtype: str) -> dict[str, float]:
    """Of pairs that are finite."""
    n = len(finite)
    off = [x - y for x, y in finite]
    relative = [abs(x - y) / abs(y) for x, y in finite if y]
    wrong_zeros = any(x and not y for x, y in finite)
    squares, golden = sum(d * d for d in off), sum(y * y for _, y in finite)
    mine, product = sum(x * x for x, _ in finite), sum(x * y for x, y in finite)
    if relative or not wrong_zeros:
        count = max(len(relative), 1)
        relative_figures = {
            "max_rel": bounded(max(relative, default=Fraction())),
            "mean_rel": bounded(Fraction(sum(relative)) / count),
            "rms_rel": root(Fraction(sum(r * r for r in relative)) / count),
        }
    else:
        relative_figures = dict.fromkeys(("max_rel", "mean_rel", "rms_rel"), math.nan)
    units = [abs(place(x, golden_dtype) - place(y, golden_dtype)) for x, y in finite]
    return {
        "max_abs": bounded(max(map(abs, off))),
        "mean_abs": bounded(sum(map(abs, off)) / n),
        "rms_error": root(Fraction(squares) / n),
        "bias": bounded(sum(off) / n),
        "relative_euclidean": 0.0 if not squares else root(squares / golden) if golden else math.inf,
        "cosine": cosine(Fraction(mine), Fraction(golden), Fraction(product)),
        "max_ulp": bounded(Fraction(max(units))),
        "mean_ulp": bounded(Fraction(sum(units)) / n),
        **relative_figures,
    }


def cosine(mine: Fraction, golden: Fraction, product: Fraction) -> float:
    """Of two vectors, from their squares and their product."""
    if not mine or not golden:
        return float(mine == golden)
    return root(product * product / (mine * golden)) * (1 if product > 0 else -1)


def place(x: Fraction, dtype: str) -> Fraction | int:
    """The position of a value among all values of a dtype, counted from 0; of whole numbers, themselves."""
    if dtype in INTEGERS:
        return x
    dtype = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    value = torch.tensor(float(x), dtype=torch.float64)
    if dtype != "float64":
        value = value.float()
    if dtype.startswith("float8"):
        largest = torch.finfo(getattr(torch, dtype)).max
        value = value.clamp(-largest, largest)
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    element = value.to(getattr(torch, dtype))
    bits = element.view(width[element.element_size()]).item()
    sign = 1 << (8 * element.element_size() - 1)
    magnitude = bits & (sign - 1)
    return -magnitude if x < 0 else magnitude
