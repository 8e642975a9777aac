"""In the reference torch chooses as for a device, and takes what the CPU alone would refuse."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from torchferry.runtime.host import differences
from torchferry.runtime.host.module import host_module
from torchferry.runtime.patches import PatchTable
from torchferry.runtime.settings import REFERENCE, LayerSettings
from torchferry.runtime.target import LayerTarget
from torchferry.vendors.registry import get_vendor


def _target() -> LayerTarget:
    return LayerTarget("the CPU", "cpu", host_module(1), "torch", "gloo", LayerSettings(REFERENCE))


@contextmanager
def applied() -> Iterator[None]:
    table = PatchTable()
    table.apply(differences.changes(_target()))
    try:
        yield
    finally:
        table.revert()


def _trained(**settings: bool) -> torch.Tensor:
    torch.manual_seed(0)
    layer = nn.Linear(9, 9)
    optimizer = torch.optim.NAdam(layer.parameters(), **settings)  # type: ignore[arg-type]
    for _ in range(5):
        optimizer.zero_grad()
        layer(torch.randn(4, 9)).pow(2).sum().backward()
        optimizer.step()
    return layer.weight.detach()


def test_alone_the_cpu_takes_a_loop() -> None:
    assert torch.equal(_trained(), _trained(foreach=False))
    assert not torch.equal(_trained(), _trained(foreach=True))


def test_optimizers_take_their_foreach_form() -> None:
    with applied():
        assert torch.equal(_trained(), _trained(foreach=True))


def test_optimizers_can_be_capturable() -> None:
    with pytest.raises(AssertionError, match="capturable"):
        _trained(capturable=True)
    with applied():
        assert torch.allclose(_trained(capturable=True), _trained())


def test_data_parallel_calls_the_module() -> None:
    with applied():
        assert nn.DataParallel(nn.Linear(2, 3))(torch.ones(4, 2)).shape == (4, 3)


def test_a_tensor_has_a_number_for_its_device() -> None:
    assert torch.ones(1).get_device() == -1
    with applied():
        assert torch.ones(1).get_device() == 0


def test_pinned_memory_is_memory_like_any_other() -> None:
    with applied():
        made = torch.empty(3, pin_memory=True).fill_(1)
        made.pin_memory().zero_()
        assert made.tolist() == [1, 1, 1]
        assert torch.tensor([1.0], pin_memory=True).new_zeros(2, pin_memory=True).tolist() == [0, 0]


def test_a_loader_that_is_to_pin_does_not_warn() -> None:
    def batches() -> list[list[int]]:
        return [batch.tolist() for batch in DataLoader(range(4), batch_size=2, pin_memory=True)]  # type: ignore[arg-type]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="pin_memory"):
            batches()
        with applied():
            assert batches() == [[0, 1], [2, 3]]


def test_a_stream_can_be_recorded() -> None:
    with applied():
        torch.ones(1).record_stream(host_module(1).current_stream())


def test_a_vendors_device_is_left_alone() -> None:
    target = replace(_target(), device_type="npu", vendor=get_vendor("ascend"))
    assert list(differences.changes(target)) == []


def test_everything_is_taken_back() -> None:
    names = ("empty", "tensor", "randn")
    before = [getattr(torch, name) for name in names], torch.Tensor.pin_memory, list(warnings.filters)
    table = PatchTable()
    table.apply(differences.changes(_target()))
    assert torch.empty is not before[0][0]
    table.revert()
    assert (
        [getattr(torch, name) for name in names],
        torch.Tensor.pin_memory,
        list(warnings.filters),
    ) == before
