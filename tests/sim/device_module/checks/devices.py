"""Devices: index, context, name, properties."""

from __future__ import annotations

import os

import pytest
import torch

from tests.sim.checking import Target


def check_there_are_two_devices(target: Target) -> None:
    assert target.module.is_available() is True
    assert target.module.device_count() == 2
    assert target.module.is_initialized() is True
    assert target.module._initialized is True
    assert target.module._is_in_bad_fork() is False


def check_a_device_can_be_named_in_every_way(target: Target) -> None:
    for form in (1, f"{target.type}:1", torch.device(target.type, 1)):
        target.module.set_device(form)
        assert target.module.current_device() == 1
        assert torch.ones(1, device=target.type).device.index == 1
    target.module.set_device(0)
    target.module.set_device(-1)
    assert target.module.current_device() == 0


def check_a_device_that_does_not_exist_raises(target: Target) -> None:
    with pytest.raises(RuntimeError):
        target.module.set_device(2)
    with pytest.raises(AssertionError, match="Invalid device id"):
        target.module.get_device_name(2)
    with pytest.raises(RuntimeError, match="Invalid device argument 2: did you call init"):
        target.module.memory_allocated(2)
    with pytest.raises(RuntimeError, match="invalid device ordinal: 2"):
        target.module.synchronize(2)
    with pytest.raises(ValueError, match=f"{target.type} device"):
        target.module.set_device("cpu")
    assert target.module.current_device() == 0


def check_the_context_comes_back_also_after_an_error(target: Target) -> None:
    with pytest.raises(KeyError), target.module.device(1):
        assert target.module.current_device() == 1
        with target.module.device(None), target.module.device(-1):
            assert target.module.current_device() == 1
        raise KeyError
    assert target.module.current_device() == 0


def check_device_of_takes_a_tensor_on_any_device(target: Target) -> None:
    with target.module.device_of(torch.ones(1, device=f"{target.type}:1")):
        assert target.module.current_device() == 1
    with target.module.device_of(torch.ones(1)):
        assert target.module.current_device() == 0


def check_exchange_answers_the_device_before(target: Target) -> None:
    assert target.module._exchange_device(1) == 0
    assert target.module._maybe_exchange_device(0) == 1
    assert target.module._exchange_device(-1) == -1


def check_name_and_properties(target: Target) -> None:
    properties = target.module.get_device_properties(0)
    assert target.module.get_device_name() == properties.name == target.vendor.limits.device_name
    assert properties.total_memory == 2**30
    assert properties.name in repr(properties)
    with pytest.raises(AttributeError, match="no field 'nonsense'"):
        _ = properties.nonsense


def check_capability_is_what_the_properties_say(target: Target) -> None:
    capability = target.module.get_device_capability()
    properties = target.module.get_device_properties()
    if getattr(properties, "major", None) is None:
        assert capability is None
    else:
        assert capability == (properties.major, properties.minor)


def check_capability_from_the_environment(target: Target) -> None:
    variable = target.module._simulated_identity.capability_env
    if variable:
        os.environ[variable] = "8.5"
        try:
            assert target.module.get_device_capability() == (8, 5)
        finally:
            del os.environ[variable]


def check_bfloat16_is_what_autocast_takes(target: Target) -> None:
    assert target.module.is_bf16_supported() is ("bfloat16" in target.vendor.amp_dtypes)


def check_peers_reach_each_other(target: Target) -> None:
    if hasattr(target.module, "can_device_access_peer"):
        assert target.module.can_device_access_peer(0, 1) is True
        assert target.module.can_device_access_peer(0, 0) is False


def check_methods_of_tensors_and_modules(target: Target) -> None:
    method, flag = target.vendor.tensor_method, target.vendor.is_attribute
    moved = getattr(torch.ones(2), method)(1)
    assert (moved.device.type, moved.device.index) == (target.type, 1)
    assert getattr(moved, flag) is True
    assert getattr(moved.cpu(), flag) is False
    layer = getattr(torch.nn.Linear(2, 2), method)()
    assert {str(entry.device) for entry in layer.parameters()} == {f"{target.type}:0"}
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 1), torch.ones(1, 1)])
    assert getattr(getattr(packed, method)(), flag) is True
    assert getattr(torch.ones(3).untyped_storage(), method)().device.type == target.type


def check_the_version_has_the_vendors_name(target: Target) -> None:
    name = target.vendor.api("torch.version.cuda").name.rpartition(".")[2]
    assert isinstance(getattr(torch.version, name), str)
