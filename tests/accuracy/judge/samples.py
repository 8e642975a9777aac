"""PyTorch's own samples of all its operators, recorded; and mistakes that results can have."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tools.conformance.operators import cpu_promises, operator, samples
from torch.testing import make_tensor
from torch.utils._pytree import tree_leaves

from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.judge.execution import is_random, is_view, leaves_uninitialised
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, Judgement
from torchferry.accuracy.model import Call

from .recorded import Claimed, record, seeded

_HARDLY_USABLE = ("uint16", "uint32", "uint64")  # PyTorch has no arithmetic to make mistakes with
Mistake = Callable[[torch.Tensor], torch.Tensor | None]


def record_samples(path: Path, names: list[str], dtype: torch.dtype, limit: int) -> Record:
    """Forward and backward; what PyTorch refuses is left out."""

    def program() -> None:
        for name in names:
            if cpu_promises(name, dtype):
                try:
                    _call(name, dtype, limit)
                except Exception:
                    continue

    with warnings.catch_warnings(), seeded():
        warnings.simplefilter("ignore")
        return record(path, program)


def _call(name: str, dtype: torch.dtype, limit: int) -> None:
    called = operator(name, dtype)
    for sample in samples(name, dtype, limit):
        result = sample.prepare_gradient(called.call(sample.input, *sample.args, **(sample.kwargs or {})))
        leaves = [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
        roots = [each for each in leaves if each.requires_grad and each.numel()]
        if called.is_differentiable and roots:
            gradients = [make_tensor(each.shape, dtype=each.dtype, device="cpu") for each in roots]
            torch.autograd.backward(roots, gradients)


def calls_that_differ(recorded: Record, most: int) -> Iterator[Call]:
    """Each way of calling an operator once, and not too many of one."""
    seen: set[str] = set()
    counts: dict[tuple[str, ...], int] = {}
    for call in recorded.calls:
        looks = repr(
            (call.operator, call.arguments, [(each.dtype, each.shape, each.stride) for each in call.inputs])
        )
        kind = (call.operator, *(each.dtype for each in call.outputs))
        if looks not in seen and counts.get(kind, 0) < most:
            seen.add(looks)
            counts[kind] = counts.get(kind, 0) + 1
            yield call


class Claims(Claimed):
    """A record in which some results are others: those with the offsets -1, -2 ..."""

    def __init__(self, recorded: Record, claimed: list[torch.Tensor]) -> None:
        super().__init__(recorded, {(at, ""): tensor for at, tensor in enumerate(claimed)})


def judge_mistakes(recorded: Record, call: Call) -> Iterator[tuple[str, Judgement]]:
    """What is said of each result of a call with each mistake that makes a difference."""
    if is_view(call.operator) or leaves_uninitialised(call.operator) or is_random(call.operator):
        return
    for number, output in enumerate(call.outputs):
        if output.offset is None or not output.elements or output.dtype in _HARDLY_USABLE:
            continue
        result = recorded.tensor(output).contiguous()
        for name, mistake in MISTAKES.items():
            wrong = mistake(result)
            if wrong is None or _are_same(wrong, result):
                continue
            claims = Claims(recorded, [wrong])
            outputs = [*call.outputs]
            outputs[number] = replace(output, offset=-1, content=0, stride=wrong.stride())
            judgement = Judge(claims, None).judge(CallPair(replace(call, outputs=tuple(outputs)), None))
            yield f"{output.name} {name}", judgement


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not _is_floating(one):
        return torch.equal(one, other)
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _is_floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _at_largest(change: Callable[[Any], Any]) -> Mistake:
    def spoil(result: torch.Tensor) -> torch.Tensor:
        flat = result.clone().view(-1)
        magnitude = flat.abs().nan_to_num(0.0, 0.0, 0.0) if _is_floating(flat) else flat.long().abs()
        place = magnitude.argmax()
        flat[place] = change(flat[place]) if flat.dtype != torch.bool else ~flat[place]
        return flat.view(result.shape)

    return spoil


def _without_tail(result: torch.Tensor) -> torch.Tensor:
    flat = result.clone().view(-1)
    flat[-max(1, flat.numel() // 8) :] = 0
    return flat.view(result.shape)


def _off(value: torch.Tensor) -> torch.Tensor:
    """By more than a unit in the last place."""
    if not _is_floating(value):
        return value + 1
    return value * (1.05 if value.dtype == torch.bfloat16 else 1.01)


def _scaled(result: torch.Tensor) -> torch.Tensor | None:
    factors = {torch.bfloat16: 1.02, torch.float16: 1.004}
    return result * factors.get(result.dtype, 1.001) if _is_floating(result) else None


def _of_eight_bits(result: torch.Tensor) -> torch.Tensor | None:
    is_single = result.dtype == torch.float32
    return (result.view(torch.int32) & -65536).view(torch.float32) if is_single else None


def _shifted(result: torch.Tensor) -> torch.Tensor | None:
    return result.view(-1).roll(1).view(result.shape) if result.numel() > 2 else None


def _with_nan(result: torch.Tensor) -> torch.Tensor | None:
    if not _is_floating(result):
        return None
    flat = result.clone().view(-1)
    flat[flat.numel() // 2] = float("nan")
    return flat.view(result.shape)


def _rows_exchanged(result: torch.Tensor) -> torch.Tensor | None:
    if result.dim() < 2 or result.shape[0] < 2:
        return None
    return result[[1, 0, *range(2, result.shape[0])]]


MISTAKES: dict[str, Mistake] = {
    "tail is zero": _without_tail,
    "one is off": _at_largest(_off),
    "one has the wrong sign": _at_largest(lambda value: -value),
    "scaled": _scaled,
    "cut to eight bits": _of_eight_bits,
    "shifted": _shifted,
    "nan": _with_nan,
    "rows exchanged": _rows_exchanged,
}
