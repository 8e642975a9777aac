"""Runs a case twice: as it was written on the CPU, and as the converter writes it where that must run."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tests.conversion.rewriting import run as convert
from tests.conversion.similar.cases import Case
from tests.conversion.similar.references import installed

# Relative and absolute; in half precision the two round at different places.
TOLERANCE = {"float32": (2e-5, 2e-5), "float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}


def check_case(case: Case, to: str, place: str, dtypes: tuple[str, ...] = ()) -> None:
    """Fail if the program that the converter makes for a target computes something else than the original; in the dtypes
    of the case, or in others."""
    conversion = convert(case.source, to, "similar")
    assert conversion.new_text is not None, f"{case.call} was left as it is"
    for dtype in dtypes or case.dtypes:
        with installed(for_cuda=True):
            expected = _outcome(case, case.source, dtype, "cpu")
        with installed(for_cuda=False):
            found = _outcome(case, conversion.new_text, dtype, "cpu" if case.on_host else place)
        _compare(found, expected, dtype, f"{case.call} as {dtype}:\n{conversion.new_text}")


def _outcome(case: Case, source: str, dtype: str, place: str) -> list[Tensor]:
    """What a program answers, and the gradients of what it was given."""
    names: dict[str, Any] = {}
    exec(compile(source, f"<{case.name}>", "exec"), names)
    program = names["program"]
    torch.manual_seed(0)
    if "model" in inspect.signature(program).parameters:
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
        batches = [torch.randn(5, 4) for _ in range(5)]
        with _process_group(case.on_host and place == "cpu"):
            there: dict[str, Any] = {"device": place, "dtype": getattr(torch, dtype)}
            return list(program(model.to(**there), [batch.to(**there) for batch in batches]))
    values = {name: _value(made, dtype, place) for name, made in case.inputs.items()}
    leaves = [value for value in values.values() if isinstance(value, Tensor) and value.requires_grad]
    answer = program(**values)
    outputs = [answer] if isinstance(answer, Tensor) else list(answer)
    torch.manual_seed(1)
    for output in outputs:
        if output.requires_grad:
            output.backward(torch.randn(output.shape).to(output), retain_graph=True)
    return [*outputs, *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def _value(made: Any, dtype: str, place: str) -> Any:
    if isinstance(made, tuple):
        return torch.randn(made).to(getattr(torch, dtype)).to(place).requires_grad_()
    value = made()
    if value == "device of this run":
        return place
    return value.to(place) if isinstance(value, Tensor) else value


def _compare(found: list[Tensor], expected: list[Tensor], dtype: str, what: str) -> None:
    assert len(found) == len(expected), what
    relative, absolute = TOLERANCE[dtype]
    for one, other in zip(found, expected, strict=True):
        assert one.is_contiguous() or not other.is_contiguous(), f"strides {one.stride()}: {what}"
        torch.testing.assert_close(
            one.detach().cpu(),
            other.detach(),
            rtol=relative,
            atol=absolute,
            equal_nan=True,
            msg=lambda message: f"{message}\n{what}",
        )


@contextmanager
def _process_group(is_wanted: bool) -> Iterator[None]:
    """A group of one process, which DistributedDataParallel asks for."""
    if not is_wanted:
        yield
        return
    store = torch.distributed.HashStore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()
