"""Which arguments two calls of one operator were given that are not the same. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from torchferry.accuracy.compare.names import is_plumbing
from torchferry.accuracy.model import Call, TensorRef, Value
from torchferry.ops.model import Special

# They say where and how a kernel works, not what it computes.
_OF_THE_DEVICE = frozenset(
    {
        "device", "layout", "pin_memory", "non_blocking", "memory_format", "generator", "half_to_float", "benchmark",
        "deterministic", "allow_tf32", "cudnn_enabled", "stride_order", "implicit", "copy",
    }
)  # fmt: skip
_OF_THE_LAYOUT = frozenset({"stride", "storage_offset"})  # of calls that only make room or look at data
_KINDS_OF_THE_DEVICE = frozenset({"device", "layout", "memory_format", "generator", "stream"})
_DTYPE = "dtype"
_LONGEST = 60  # letters of a value
_MISSING = Special("missing", "")


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One argument, with the value on each side."""

    name: str  # eps, scalars[2]
    mine: str
    golden: str
    share: float  # of the value, by which fractions differ; inf: they are no fractions
    is_whole: bool = False  # whole numbers, which shapes and positions are

    def __str__(self) -> str:
        return f"{self.name}={self.mine} here, {self.golden} in golden"


def different_arguments(mine: Call, golden: Call, *, is_complete: bool) -> list[ArgumentDifference]:
    """Without what says only how a kernel works. `is_complete`: what a call does not have is its default."""
    ours, theirs = dict(mine.arguments), dict(golden.arguments)
    has_other_shapes, has_other_dtypes = _inputs_differ(mine, golden)
    plumbing = is_plumbing(mine.operator)
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        if name in _OF_THE_DEVICE or (plumbing and name in _OF_THE_LAYOUT):
            continue
        if not is_complete and (name not in ours or name not in theirs):
            continue
        for each in _differences(mine.operator, name, ours.get(name, _MISSING), theirs.get(name, _MISSING)):
            is_consequence = (each.is_whole and has_other_shapes) or (
                name.endswith(_DTYPE) and (plumbing or has_other_dtypes)
            )
            if not is_consequence:
                found.append(each)
    return found


def _inputs_differ(mine: Call, golden: Call) -> tuple[bool, bool]:
    """Whether the inputs of two calls have other shapes, and other dtypes."""
    ours, theirs = mine.inputs, golden.inputs
    return (
        [each.shape for each in ours] != [each.shape for each in theirs],
        [each.dtype for each in ours] != [each.dtype for each in theirs],
    )


def _differences(operator: str, name: str, mine: Value, golden: Value) -> Iterator[ArgumentDifference]:
    if mine is _MISSING or golden is _MISSING:
        known, default = _default(operator, name)
        if known and default == (golden if mine is _MISSING else mine):
            return
    if isinstance(mine, tuple) and isinstance(golden, tuple) and len(mine) == len(golden):
        for at, (one, other) in enumerate(zip(mine, golden, strict=True)):
            yield from _differences(operator, f"{name}[{at}]", one, other)
        return
    if _are_equal(mine, golden):
        return
    share = _share(mine, golden)
    shown = [_shown(operator, name, value) for value in (mine, golden)]
    if isinstance(mine, float) and isinstance(golden, float) and f"{mine:.6g}" != f"{golden:.6g}":
        shown = [f"{mine:.6g}", f"{golden:.6g}"]
    yield ArgumentDifference(name, shown[0], shown[1], share, _is_whole(mine) and _is_whole(golden))


def _are_equal(mine: Value, golden: Value) -> bool:
    if isinstance(mine, Special) and isinstance(golden, Special):
        return mine == golden or mine.kind.lower() in _KINDS_OF_THE_DEVICE
    if isinstance(mine, TensorRef) or isinstance(golden, TensorRef):
        return isinstance(mine, TensorRef) and isinstance(golden, TensorRef)
    both_nan = isinstance(mine, float) and isinstance(golden, float) and mine != mine and golden != golden
    return both_nan or mine == golden


def _share(mine: Value, golden: Value) -> float:
    numbers = isinstance(mine, (int, float)) and isinstance(golden, (int, float))
    if not numbers or not (isinstance(mine, float) or isinstance(golden, float)):
        return math.inf
    assert isinstance(mine, (int, float)) and isinstance(golden, (int, float))
    if not (math.isfinite(mine) and math.isfinite(golden)):
        return math.inf
    return abs(mine - golden) / max(abs(mine), abs(golden))


def _is_whole(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_whole, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(operator: str, name: str, value: Value) -> str:
    if value is _MISSING:
        known, default = _default(operator, name)
        return f"{_text(default)} (its default)" if known else "not given"
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(value: Value) -> str:
    if isinstance(value, TensorRef):
        return "a tensor"
    if isinstance(value, Special):
        return value.text
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return value if isinstance(value, str) else repr(value)


@cache
def _default(operator: str, name: str) -> tuple[bool, Value]:
    """Whether PyTorch is here and knows a default, and the default."""
    if find_spec("torch") is None:
        return False, None
    from torchferry.accuracy.replay.operators import find_overload

    overload = find_overload(operator)
    for argument in overload._schema.arguments if overload is not None else ():
        if argument.name == name and argument.has_default_value():
            default = argument.default_value
            return True, tuple(default) if isinstance(default, list) else default
    return False, None
