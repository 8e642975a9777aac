"""What a user can choose: what type checks answer, the capability, the version; which devices are visible."""

from __future__ import annotations

import os
import warnings

import pytest
import torch
import torch.distributed as dist

from tests.sim.checking import Target
from torchferry import runtime
from torchferry.errors import RunError
from torchferry.runtime import LayerSettings, TypeChecks


def check_types_are_the_vendors_alone(target: Target) -> None:
    runtime.activate(LayerSettings(target.vendor.name, type_checks=TypeChecks.VENDOR))
    there = torch.ones(2).cuda(1)
    assert there.device.type == target.type != "cuda" and type(there.device.type) is str
    assert there.type() == f"torch.{target.type}.FloatTensor" != "torch.cuda.FloatTensor"
    assert there.is_cuda and torch.device("cuda:1") == there.device
    assert there.to("cuda:0").device.index == 0 and isinstance(there, torch.cuda.FloatTensor)
    with torch.autocast(there.device.type):
        assert torch.is_autocast_enabled("cuda")
    torch.nn.Linear(2, 2).cuda(1)(there)


def check_types_are_both(target: Target) -> None:
    runtime.activate(LayerSettings(target.vendor.name, type_checks=TypeChecks.BOTH))
    assert torch.ones(1).cuda().device.type == "cuda"


def check_capability(target: Target) -> None:
    runtime.activate(LayerSettings(target.vendor.name, capability="7.5"))
    assert torch.cuda.get_device_capability(0) == (7, 5)
    properties = torch.cuda.get_device_properties("cuda:1")
    assert (properties.major, properties.minor) == (7, 5)


def check_version(target: Target) -> None:
    before = torch.version.cuda
    runtime.activate(LayerSettings(target.vendor.name, cuda_version="12.4"))
    assert torch.version.cuda == "12.4"
    runtime.deactivate()
    assert torch.version.cuda is before


def check_wrong_settings_are_said(target: Target) -> None:
    for wrong in ({"capability": "8"}, {"capability": "sm_80"}, {"cuda_version": "twelve"}):
        with pytest.raises(RunError, match="write it as"):
            LayerSettings(target.vendor.name, **wrong)  # type: ignore[arg-type]


def check_settings_are_handed_on(target: Target) -> None:
    settings = LayerSettings(target.vendor.name, ("a", "b"), TypeChecks.VENDOR, "9.0", "12.4")
    assert LayerSettings.read({LayerSettings.variable: settings.encode()}) == settings
    assert LayerSettings.read({}) is None and LayerSettings.read({LayerSettings.variable: ""}) is None
    runtime.activate(LayerSettings(target.vendor.name, capability="7.5"))
    assert LayerSettings.read(os.environ) == LayerSettings(target.vendor.name, capability="7.5")
    runtime.deactivate()
    assert LayerSettings.variable not in os.environ


def check_visible_devices_that_were_set_before(target: Target) -> None:
    own = target.vendor.visible_devices_env
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    try:
        runtime.activate(target.vendor.name)
        assert os.environ[own] == "1"
        runtime.deactivate()
        assert own not in os.environ and os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    finally:
        del os.environ["CUDA_VISIBLE_DEVICES"]


def check_names_of_nvidias_cards_hide_nothing(target: Target) -> None:
    own = target.vendor.visible_devices_env
    runtime.activate(target.vendor.name)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-1a2b,GPU-3c4d"
        assert own not in os.environ
        assert "use device numbers" in str(said[-1].message)
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        assert os.environ[own] == "0"
    finally:
        del os.environ["CUDA_VISIBLE_DEVICES"]
        runtime.deactivate()


def check_the_users_own_word_stands(target: Target) -> None:
    own = target.vendor.visible_devices_env
    os.environ[own], os.environ["CUDA_VISIBLE_DEVICES"] = "0", "1"
    try:
        runtime.activate(target.vendor.name)
        assert os.environ[own] == "0"
        os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        assert os.environ[own] == "0"
        del os.environ["CUDA_VISIBLE_DEVICES"]
        assert os.environ.pop(own) == "0"
    finally:
        os.environ.pop(own, None)


def check_backends_answer_to_both_names_or_one(target: Target) -> None:
    for kind, expected in ((TypeChecks.BOTH, True), (TypeChecks.VENDOR, False)):
        runtime.activate(LayerSettings(target.vendor.name, type_checks=kind))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
        try:
            assert (dist.get_backend() == "nccl") is expected
            assert dist.get_backend() == target.vendor.dist_backend
        finally:
            dist.destroy_process_group()
        runtime.deactivate()
