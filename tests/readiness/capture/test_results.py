"""A program computes the same while it is captured, with every kind of tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchferry.readiness.capture.mode import CapturingMode


def seen(compute: Callable[[], Any]) -> tuple[Any, set[str]]:
    mode = CapturingMode()
    with mode.switched_on():
        result = compute()
    return result, {use.operator for use in mode.uses()}


COMPLEX = torch.complex(torch.eye(3) + 0.5, torch.tril(torch.ones(3, 3)))
HALF = torch.tensor(2.5, dtype=torch.float16)
SPARSE = torch.eye(3).to_sparse().coalesce()
QUANTIZED = [0.1, 0, torch.qint8]


@pytest.mark.parametrize(
    "compute",
    [
        pytest.param(lambda: torch.arange(3.0) % 1, id="a number in a formula"),
        pytest.param(lambda: torch.arange(3) % 2.5, id="a number of a higher kind"),
        pytest.param(lambda: HALF % 2, id="a number beside a scalar of a small type"),
        pytest.param(lambda: torch.xlogy(2, torch.arange(3.0)), id="a number first"),
        pytest.param(lambda: torch.pinverse(COMPLEX), id="conjugates in a formula"),
        pytest.param(lambda: SPARSE.clone().to_dense(), id="sparse"),
        pytest.param(lambda: torch.quantize_per_tensor(torch.ones(3), *QUANTIZED).clone(), id="quantized"),
        pytest.param(
            lambda: torch.nested.nested_tensor([torch.ones(2, 4)]).clone().to_padded_tensor(0.0), id="nested"
        ),
    ],
)
def test_the_result_is_the_same(compute: Callable[[], torch.Tensor]) -> None:
    result, _ = seen(compute)
    expected = compute()
    assert result.dtype == expected.dtype
    torch.testing.assert_close(result, expected)


def test_what_a_class_of_tensors_calls_is_seen() -> None:
    linear = torch.nn.Linear(4, 4)
    jagged = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged)
    _, operators = seen(lambda: linear(jagged).values().sum().backward())
    assert {"aten::addmm", "aten::mm"} <= operators
    assert not any(name.startswith("aten::_nested_get") for name in operators)


def test_a_program_that_exports_its_model() -> None:
    model = torch.nn.Linear(3, 2)
    sizes = {0: torch.export.Dim("batch")}
    exported, _ = seen(lambda: torch.export.export(model, (torch.ones(4, 3),), dynamic_shapes=(sizes,)))
    assert exported.module()(torch.ones(5, 3)).shape == (5, 2)
