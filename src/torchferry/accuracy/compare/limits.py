"""How large a difference rounding explains, where nothing is known but dtypes: for judgements without PyTorch."""

from __future__ import annotations

from collections.abc import Iterable

from torchferry.accuracy.compare.names import family
from torchferry.accuracy.model import TensorRecord

EPSILONS = {
    "float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10, "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3, "float8_e5m2": 2.0**-2, "float8_e5m2fnuz": 2.0**-2, "complex64": 2.0**-23,
    "complex128": 2.0**-52, "complex32": 2.0**-10,
}  # fmt: skip
# A sum of n elements is rounded n times, and the errors add up as sqrt(n) does: the factor is for some ten thousand, of
# dtypes that devices add up in themselves. Those of fewer digits are added up in single precision.
_FACTOR = {"float64": 256.0, "float32": 256.0, "complex64": 256.0, "complex128": 256.0}
_FACTOR_OF_SHORT = 4.0
_REDUCED = 4 * 2.0**-10  # what products of mantissas of 10 bits, as in TF32, explain
_REDUCED_FAMILIES = ("matrix product", "convolution", "attention", "recurrent layer")
AMPLIFICATION = 16.0  # a difference of the inputs may grow by this much in one operator


def rounding(tensors: Iterable[TensorRecord]) -> float:
    """What is normal, in the dtype with the fewest digits that takes part."""
    return max((_of_one(tensor.dtype) for tensor in tensors), default=0.0)


def single_precision() -> float:
    """What is normal of sums of single precision, whatever dtype they were added up in."""
    return _of_one("float32")


def is_reduced(operator: str, distance: float) -> bool:
    """Whether an operator that multiplies matrices differs as it does when it takes fewer digits for them."""
    return distance <= _REDUCED and family(operator).removesuffix(" backward") in _REDUCED_FAMILIES


def _of_one(dtype: str) -> float:
    return EPSILONS.get(dtype, 0.0) * _FACTOR.get(dtype, _FACTOR_OF_SHORT)
