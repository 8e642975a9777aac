"""PyTorch's dtypes by name: which sort each is, and its other names. Imports no torch."""

from __future__ import annotations

_ALIASES = {
    "float": "float32", "double": "float64", "half": "float16", "fp32": "float32", "fp64": "float64",
    "fp16": "float16", "bf16": "bfloat16", "long": "int64", "int": "int32", "short": "int16",
    "cfloat": "complex64", "cdouble": "complex128", "chalf": "complex32",
}  # fmt: skip
FLOATS = ("float32", "float64", "float16", "bfloat16")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
COMPLEX = ("complex64", "complex128", "complex32")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
ALL = (*FLOATS, *SMALL_FLOATS, *COMPLEX, *SIGNED, *UNSIGNED, "bool")


def dtype_name(text: str) -> str:
    """The name of a dtype as PyTorch prints it, without `torch.`; "" if there is none."""
    short = text.removeprefix("torch.")
    name = _ALIASES.get(short, short)
    return name if name in ALL else ""


def is_floating(name: str) -> bool:
    """Whether it holds fractions; complex ones do."""
    return name in FLOATS or name in SMALL_FLOATS or name in COMPLEX
