"""How results are compared: what is near enough, and how a difference is told."""

from __future__ import annotations

import sys
import unittest
from dataclasses import dataclass

import pytest
import torch

import torchferry
from torchferry.readiness.cases.comparing import (
    ResultMismatchError,
    backward,
    compare,
    find_device,
    moved,
    outputs_of,
    terms_of,
)

CPU = torch.device("cpu")


def _is_near(
    actual: torch.Tensor, expected: torch.Tensor, reference: torch.Tensor | None = None, terms: float = 1
) -> bool:
    try:
        compare("output", actual, expected, reference, terms)
    except ResultMismatchError:
        return False
    return True


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        (torch.float64, 1e-8, 1e-5),
        (torch.float32, 1e-6, 1e-3),
        (torch.float16, 5e-4, 1e-2),
        (torch.bfloat16, 1e-2, 0.1),
        (torch.complex64, 1e-6, 1e-3),
    ],
)
def test_by_dtype(dtype: torch.dtype, near: float, far: float) -> None:
    expected = torch.full((5,), 3.0, dtype=dtype)
    assert _is_near((expected * (1 + near)).to(dtype), expected)
    assert not _is_near((expected * (1 + far)).to(dtype), expected)


def test_whole_numbers_are_equal_or_not() -> None:
    large = torch.tensor([2**60])
    assert _is_near(large, large.clone())
    assert not _is_near(large + 1, large)
    assert not _is_near(torch.tensor([True]), torch.tensor([False]))


def test_what_is_no_number() -> None:
    nan, inf = float("nan"), float("inf")
    expected = torch.tensor([nan, inf, -inf, 1.0])
    assert _is_near(expected.clone(), expected)
    for wrong in (
        [0.0, inf, -inf, 1.0],
        [nan, nan, -inf, 1.0],
        [nan, -inf, -inf, 1.0],
        [nan, inf, -inf, nan],
    ):
        assert not _is_near(torch.tensor(wrong), expected)
        assert not _is_near(torch.tensor(wrong), expected, torch.tensor([1.0] * 4, dtype=torch.float64))


def test_long_sums_may_be_further_apart() -> None:
    expected = torch.full((4,), 100.0)
    actual = expected * (1 + 2e-5)
    assert not _is_near(actual, expected, terms=4)
    assert _is_near(actual, expected, terms=4096)


def test_the_cpu_s_own_error_is_the_measure() -> None:
    """Where half precision is far from the truth on the CPU as well, a device may be as far on the other side."""
    truth = torch.linspace(1, 2, 50, dtype=torch.float64)
    expected = (truth * 1.03).to(torch.float16)
    other_side = (truth * 0.97).to(torch.float16)
    assert not _is_near(other_side, expected)
    assert _is_near(other_side, expected, truth)
    assert not _is_near((truth * 1.5).to(torch.float16), expected, truth)


def test_terms() -> None:
    assert terms_of(1, [1, 1000]) == 1000
    assert terms_of(8 * 9, [8 * 33, 33 * 9, 8 * 9]) == pytest.approx(33)
    assert terms_of(100, [100, 100]) == 10.0
    assert terms_of(0, [0]) == 1


def test_empty_results() -> None:
    assert _is_near(torch.empty(0), torch.empty(0), torch.empty(0, dtype=torch.float64))


def test_a_move_keeps_strides_and_copies() -> None:
    tensor = torch.arange(40.0).as_strided((3, 2), (0, 5), 4)
    copy = moved([tensor, {"a": torch.float16}, CPU, 3], CPU)
    assert copy[0].stride() == (0, 5) and copy[0].storage_offset() == 4 and torch.equal(copy[0], tensor)
    assert copy[0].data_ptr() != tensor.data_ptr()
    wide = moved([tensor, {"a": torch.float16}], CPU, wide=True)
    assert wide[0].dtype is torch.float64 and wide[1]["a"] is torch.float64


def test_gradients_begin_with_the_same_numbers_in_every_dtype() -> None:
    def cast(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(64, dtype=torch.bfloat16)
    narrow, wide = (backward(cast, ([x], {}), CPU, wide=wide) for wide in (False, True))
    name = "gradient of argument 0"
    assert torch.equal(narrow[name].double(), wide[name])


def test_no_device_is_a_reason_to_skip() -> None:
    with pytest.raises(unittest.SkipTest, match="PyTorch sees no device of type xpu here"):
        find_device("intel", "", "xpu")


def test_neither_plugin_nor_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchferry.sim", None)
    monkeypatch.delattr(torchferry, "sim", raising=False)
    with pytest.raises(unittest.SkipTest, match="install torch_acme, or torchferry"):
        find_device("acme", "torch_acme", "acme")


def test_everything_that_is_returned_is_compared() -> None:
    @dataclass
    class Output:
        logits: torch.Tensor
        hidden: list[torch.Tensor]

    one = torch.ones(2)
    assert list(outputs_of((one, 3, {"a": 2.5, "b": None}))) == ["output 0", "output 1", "output 2 a"]
    assert list(outputs_of(Output(one, [one]))) == ["output logits", "output hidden 0"]
    assert outputs_of(None) == {} and outputs_of([]) == {}
    with pytest.raises(TypeError, match="returns a object, in which nothing can be compared"):
        outputs_of(object())
