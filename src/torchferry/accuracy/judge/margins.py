"""How far a result may be from the right one, by class of operator and dtype; the figures are in margins.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

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
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, Any] = toml.loads(_FILE.read_text("utf-8"))
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
