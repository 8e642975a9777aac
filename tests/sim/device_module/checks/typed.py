"""Typed tensors and storages, and the default tensor type."""

from __future__ import annotations

import numpy
import pytest
import torch

from tests.sim.checking import Target


def check_typed_tensors_are_made_in_the_old_ways(target: Target) -> None:
    float_type, long_type = target.module.FloatTensor, target.module.LongTensor
    assert float_type(2, 3).shape == (2, 3)
    assert float_type(torch.Size([4])).shape == (4,)
    assert float_type().shape == (0,)
    assert long_type([1, 2]).tolist() == [1, 2]
    assert float_type(numpy.array([1.5])).tolist() == [1.5]
    assert float_type(torch.ones(2, device=target.type)).device.type == target.type
    assert long_type([1]).dtype is torch.int64
    assert long_type([1]).device.type == target.type
    with pytest.raises(TypeError):
        float_type([1], [2])


def check_isinstance_asks_device_and_dtype(target: Target) -> None:
    tensor = torch.ones(2, device=target.type)
    assert isinstance(tensor, target.module.FloatTensor)
    assert not isinstance(tensor, target.module.HalfTensor)
    assert not isinstance(tensor.cpu(), target.module.FloatTensor)
    assert not isinstance(tensor, torch.FloatTensor)


def check_type_answers_and_takes_the_devices_types(target: Target) -> None:
    name = target.vendor.torch_module
    tensor = torch.ones(2, device=target.type)
    assert tensor.type() == f"{name}.FloatTensor"
    assert tensor.type(f"{name}.HalfTensor").type() == f"{name}.HalfTensor"
    assert tensor.type(target.module.HalfTensor).type() == f"{name}.HalfTensor"
    assert torch.ones(2).type(target.module.FloatTensor).device.type == target.type
    assert tensor.type("torch.FloatTensor").device.type == "cpu"
    assert target.module.FloatTensor.__name__ == "FloatTensor"
    assert repr(target.module.FloatTensor) == f"<class '{name}.FloatTensor'>"


def check_the_default_tensor_type_moves_new_tensors_and_comes_back(target: Target) -> None:
    try:
        torch.set_default_tensor_type(target.module.FloatTensor)
        assert torch.ones(2).type() == f"{target.vendor.torch_module}.FloatTensor"
        torch.set_default_tensor_type(f"{target.vendor.torch_module}.HalfTensor")
        assert torch.zeros(2).dtype is torch.float16
        with pytest.raises(TypeError):
            torch.set_default_tensor_type(target.module.LongTensor)
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(2).type() == "torch.FloatTensor"


def check_typed_storages(target: Target) -> None:
    storage = target.module.FloatStorage(3)
    assert (storage.device.type, storage.dtype, storage.size()) == (target.type, torch.float32, 3)
    assert isinstance(torch.ones(2, device=target.type).storage(), target.module.FloatStorage)
    assert not isinstance(torch.ones(2).storage(), target.module.FloatStorage)
    assert torch.is_storage(storage)
    assert target.module.FloatTensor(storage.untyped()).shape == (3,)
