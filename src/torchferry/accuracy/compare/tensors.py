"""Which tensors of two calls belong together: by name, then by place and shape. No torch."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry.accuracy.model import TensorRecord

TensorPair = tuple[TensorRecord, TensorRecord]
_SCRATCH = ("workspace", "reserve")  # arguments of derivatives, and what begins like them


def match_tensors(
    mine: Sequence[TensorRecord], golden: Sequence[TensorRecord], *, same_operator: bool = True
) -> list[TensorPair]:
    """In the order of mine. Calls of different operators have other names for the same, so a shape must fit, too."""
    partner: dict[int, int] = {}
    by_name = {tensor.name: at for at, tensor in enumerate(golden)}
    for at, tensor in enumerate(mine):
        other = by_name.get(tensor.name)
        if other is not None and (same_operator or golden[other].shape == tensor.shape):
            partner[at] = other
    _match_shapes(mine, golden, partner)
    return [(mine[at], golden[partner[at]]) for at in sorted(partner)]


def is_scratch(tensor: TensorRecord) -> bool:
    """Whether it is memory that a kernel hands on to its derivative: parts of it may never have been written to."""
    direction, _, name = tensor.name.partition("/")
    if direction == "input":
        return name.startswith(_SCRATCH)
    return tensor.dtype == "uint8" and name.removeprefix("output_") != "0"


def _match_shapes(
    mine: Sequence[TensorRecord], golden: Sequence[TensorRecord], partner: dict[int, int]
) -> None:
    """What is left: the first of golden that has the shape and a dtype of the same sort."""
    taken = set(partner.values())
    left = [at for at in range(len(golden)) if at not in taken]
    for at, tensor in enumerate(mine):
        if at in partner:
            continue
        fitting = next((other for other in left if _fits(tensor, golden[other])), None)
        if fitting is not None:
            partner[at] = fitting
            left.remove(fitting)


def _fits(one: TensorRecord, other: TensorRecord) -> bool:
    return one.shape == other.shape and _sort(one.dtype) == _sort(other.dtype)


def _sort(dtype: str) -> str:
    if "float" in dtype:
        return "float"
    return next((kind for kind in ("complex", "bool") if dtype.startswith(kind)), "int")
