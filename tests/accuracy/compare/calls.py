"""Calls for the tests of matching and comparing: short to write, easy to read."""

from __future__ import annotations

from dataclasses import replace

from torchferry.accuracy.compare.matching import CallMatch, CallSequence, Matching
from torchferry.accuracy.model import Call, Statistics, TensorRecord

SHAPE = (4, 8)


def tensor(
    name: str = "output/output_0",
    shape: tuple[int, ...] = SHAPE,
    dtype: str = "float32",
    statistics: Statistics | None = None,
) -> TensorRecord:
    stride = tuple(_product(shape[at + 1 :]) for at in range(len(shape)))
    return TensorRecord(name, dtype, shape, stride, "cpu", statistics=statistics)


def _product(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def call(
    operator: str,
    module: str = "",
    phase: str = "forward",
    step: int = 1,
    shape: tuple[int, ...] = SHAPE,
    number: int = 0,
    place: str = "",
) -> Call:
    return Call(
        number,
        operator if "::" in operator else f"aten::{operator}",
        step,
        phase,
        "Net",
        module,
        place,
        inputs=(tensor("input/self", shape),),
        outputs=(tensor(shape=shape),),
    )


def program(*calls: Call | str) -> list[Call]:
    """Calls in order, numbered; a text is an operator, `module: operator` one in a module."""
    made = [_made(each) if isinstance(each, str) else each for each in calls]
    return [replace(each, number=at) for at, each in enumerate(made, 1)]


def _made(text: str) -> Call:
    module, _, operator = text.rpartition(": ")
    return call(operator, module)


def matched(mine: list[Call], golden: list[Call], *, by_number: bool = False) -> list[str]:
    """The matches as lines: `relu = relu`, `copy_ = (extra)`, `(extra) = copy_`."""
    found = Matching(CallSequence(mine), CallSequence(golden), by_number=by_number).matches()
    return [_line(match, mine, golden) for match in found]


def _line(match: CallMatch, mine: list[Call], golden: list[Call]) -> str:
    one = _named(mine[match.mine]) if match.mine is not None else f"({match.how or 'nothing'})"
    other = _named(golden[match.golden]) if match.golden is not None else f"({match.how or 'nothing'})"
    both = match.mine is not None and match.golden is not None
    return f"{one} = {other}" + (f" {match.how}" if both and match.how != "same" else "")


def _named(each: Call) -> str:
    return f"{each.operator.removeprefix('aten::')}#{each.number}"
