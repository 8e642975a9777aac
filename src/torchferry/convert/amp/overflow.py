"""Masks filled with numbers that half precision does not hold: PyTorch raises when the filled tensor is in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.program import Program, calls_in, last_name
from torchferry.convert.rule import Proposal
from torchferry.finding import Kind
from torchferry.text import Text

WORDS = (b"masked_fill", b"fill_diagonal_")
_FILLS = frozenset(word.decode() + end for word in WORDS for end in ("", "_"))
_LARGEST = 65504.0  # of float16
_TOO_LARGE = Text(
    "half precision ends at 65504: under autocast this raises if the tensor is in it; torch.finfo(x.dtype).min of the "
    "tensor x that is filled fits every dtype",
    "半精度最大为 65504：若该张量在 autocast 下为半精度，此处会报错；可改用被填充张量 x 的 torch.finfo(x.dtype).min",
)


def overflowing(program: Program) -> Iterator[Proposal]:
    """A todo for each such mask of a module."""
    if not any(word in program.module.data for word in WORDS):
        return
    for statement in program.statements:
        for call in calls_in(statement):
            if last_name(call.func) in _FILLS:
                values = [*call.args, *(keyword.value for keyword in call.keywords)]
                if any(_is_too_large(_number(value, program)) for value in values):
                    yield program.context.propose(Kind.TODO, call, _TOO_LARGE)


def _is_too_large(number: float) -> bool:
    return _LARGEST < abs(number) < float("inf")


def _number(node: ast.expr, program: Program) -> float:
    """The number that an expression is, or that a variable is once and for all; 0 if that is not known."""
    if isinstance(node, ast.Name):
        values = [value for _, value in program.assignments(node.id)]
        return _number(values[0], program) if len(values) == 1 and not isinstance(values[0], ast.Name) else 0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, program)
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if is_number else 0  # type: ignore[attr-defined]
