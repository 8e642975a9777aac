"""What is kept of a tensor tells equal tensors from different ones, and how far apart they are."""

from __future__ import annotations

import math

import pytest
import torch
import torch.utils._python_dispatch

from torchferry.observe.modes import unobserved
from torchferry.proof.compare import distance
from torchferry.proof.model import TensorFacts
from torchferry.proof.recorder import tensor_facts


def facts(tensor: torch.Tensor) -> TensorFacts:
    with unobserved():
        return tensor_facts(tensor)


def normal(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


TENSORS = {
    "scalar": torch.tensor(3.0),
    "empty": torch.zeros(0, 4),
    "half": normal(10).half(),
    "bfloat16": normal(10).bfloat16(),
    "double": normal(10).double(),
    "bool": torch.tensor([True, False, True]),
    "int": torch.arange(12).view(3, 4),
    "complex": torch.complex(normal(9), normal(9, 1)),
    "conjugate": torch.complex(normal(9), normal(9, 1)).conj(),
    "not contiguous": normal(12).view(3, 4).t(),
    "channels last": normal(96).view(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "one fold and more": normal(4097),
    "large": normal(300_001),
    "sparse": torch.eye(4).mul(2).to_sparse(),
}


@pytest.mark.parametrize("name", TENSORS)
def test_the_norm_is_that_of_the_elements(name: str) -> None:
    tensor = TENSORS[name]
    elements = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor.to_dense()
    kept = facts(tensor)
    assert kept.norm == pytest.approx(elements.double().norm().item(), rel=1e-12)
    assert kept.shape == tuple(tensor.shape)
    assert f"torch.{kept.dtype}" == str(tensor.dtype)


def test_equal_tensors_have_equal_facts_whatever_their_layout() -> None:
    square = normal(16).view(4, 4)
    assert facts(square) == facts(square.clone())
    assert facts(square.t()) == facts(square.t().contiguous())
    images = normal(96).view(2, 3, 4, 4)
    assert facts(images) == facts(images.to(memory_format=torch.channels_last))


@pytest.mark.parametrize("count", [1, 100, 5000, 300_001])
def test_the_last_bit_of_one_element_shows(count: int) -> None:
    tensor = normal(count)
    other = tensor.clone()
    other[count // 2] = torch.nextafter(other[count // 2], torch.tensor(math.inf))
    kept, changed = facts(tensor), facts(other)
    assert kept.checksum != changed.checksum
    step = (other.double() - tensor.double()).norm().item()
    assert distance(kept, changed) == pytest.approx(step, rel=1e-2)


def test_the_same_bytes_in_another_shape_or_dtype_are_another_tensor() -> None:
    zeros = torch.zeros(6)
    others = [zeros.view(2, 3), zeros.int(), zeros[:5]]
    assert len({facts(each).checksum for each in [zeros, *others]}) == 4


def test_two_changed_signs_do_not_cancel() -> None:
    tensor = normal(5000)
    other = tensor.clone()
    other[[7, 9]] = -other[[7, 9]]
    assert facts(tensor).checksum != facts(other).checksum


@pytest.mark.parametrize("count", [8, 4096, 20_000, 300_001])
def test_the_distance_of_two_tensors_can_be_estimated(count: int) -> None:
    tensor = normal(count)
    ratios = []
    for seed in range(1, 9):
        other = tensor + 1e-4 * normal(count, seed)
        apart = (other.double() - tensor.double()).norm().item()
        ratios.append(distance(facts(tensor), facts(other)) / apart)
    assert all(0.2 < ratio < 3 for ratio in ratios)
    assert 0.7 < sum(ratios) / len(ratios) < 1.3


def test_what_is_not_finite_is_infinitely_far_from_what_is() -> None:
    assert distance(facts(torch.tensor([1.0, math.nan])), facts(torch.ones(2))) == math.inf
    assert distance(facts(torch.tensor([math.nan])), facts(torch.tensor([math.nan]))) == 0


def test_looking_at_a_tensor_draws_nothing_and_records_nothing() -> None:
    seen = []

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Operators(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            seen.append(function)
            return function(*args, **(kwargs or {}))

    parameter = torch.nn.Parameter(normal(5000))
    before = torch.get_rng_state()
    with Functions(), Operators():
        facts(parameter)
    assert seen == []
    assert parameter.grad_fn is None
    assert torch.equal(before, torch.get_rng_state())
