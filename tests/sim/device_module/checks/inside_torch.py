"""What torch's own code does with the device module."""

from __future__ import annotations

import io

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from tests.sim.checking import Target, loader_pinning


def check_torch_finds_the_module(target: Target) -> None:
    assert torch.get_device_module(target.type) is target.module
    assert torch.get_device_module() is target.module


def check_torch_accelerator_is_the_device(target: Target) -> None:
    if not hasattr(torch, "accelerator"):
        return  # came with torch 2.6
    accelerator = torch.accelerator
    assert str(accelerator.current_accelerator()) == target.type
    assert (accelerator.is_available(), accelerator.device_count()) == (True, 2)
    accelerator.set_device_index(1)
    assert target.module.current_device() == accelerator.current_device_index() == 1
    accelerator.synchronize()
    accelerator.set_device_index(0)
    assert target.module.current_device() == 0
    assert accelerator.current_stream().device.type == target.type


def check_torch_accelerator_counts_the_same_memory(target: Target) -> None:
    if not hasattr(getattr(torch, "accelerator", None), "memory_allocated"):
        return  # came with torch 2.9
    tensor = torch.empty(2**20, device=target.type)
    assert torch.accelerator.memory_allocated() == target.module.memory_allocated()
    assert torch.accelerator.max_memory_allocated() == target.module.max_memory_allocated()
    assert torch.accelerator.memory_reserved() == target.module.memory_reserved()
    torch.accelerator.reset_peak_memory_stats()
    assert target.module.max_memory_allocated() == target.module.memory_allocated()
    del tensor


def check_checkpointing_repeats_dropout(target: Target) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.5)).to(target.type)
    data = torch.randn(8, 16, device=target.type, requires_grad=True)
    plain = _gradient(model, data, lambda: model(data))
    for reentrant in (True, False):
        saved = _gradient(model, data, lambda r=reentrant: checkpoint(model, data, use_reentrant=r))
        assert torch.equal(plain, saved)


def _gradient(model: torch.nn.Sequential, data: torch.Tensor, forward: object) -> torch.Tensor:
    assert callable(forward)
    torch.manual_seed(0)
    model.zero_grad()
    forward().sum().backward()
    gradient = model[0].weight.grad
    assert isinstance(gradient, torch.Tensor)
    return gradient.clone()


def check_saved_tensors_come_back_where_they_are_asked_for(target: Target) -> None:
    file = io.BytesIO()
    torch.save({"weight": torch.arange(3.0, device=f"{target.type}:1")}, file)
    places = {None: f"{target.type}:1", f"{target.type}:0": f"{target.type}:0", "cpu": "cpu"}
    for asked, expected in places.items():
        file.seek(0)
        weight = torch.load(file, map_location=asked)["weight"]
        assert (str(weight.device), weight.tolist()) == (expected, [0.0, 1.0, 2.0])


def check_loaders_pin_memory(target: Target) -> None:
    data = TensorDataset(torch.arange(8.0))
    assert torch.ones(2).pin_memory().is_pinned()
    batches = [batch for (batch,) in DataLoader(data, batch_size=4, **loader_pinning(target))]
    assert [batch.is_pinned() for batch in batches] == [True, True]
    assert batches[1].to(target.type, non_blocking=True).tolist() == [4.0, 5.0, 6.0, 7.0]


def check_loaders_with_workers(target: Target) -> None:
    data = TensorDataset(torch.arange(4.0))
    batches = [batch.to(target.type).tolist() for (batch,) in DataLoader(data, batch_size=2, num_workers=1)]
    assert batches == [[0.0, 1.0], [2.0, 3.0]]


def check_a_generator_of_the_device(target: Target) -> None:
    draws = [
        torch.rand(4, device=target.type, generator=torch.Generator(target.type).manual_seed(9)) for _ in "ab"
    ]
    assert torch.equal(*draws)
