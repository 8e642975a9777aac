"""`torch.device` in all its forms, and what else makes a device of a word or a number."""

from __future__ import annotations

import copy
import operator
import pickle
from enum import Enum

import pytest
import torch

from tests.sim.checking import Target


def check_all_forms(target: Target) -> None:
    first, second = torch.device(f"{target.type}:0"), torch.device(f"{target.type}:1")
    assert torch.device("cuda:1") == torch.device("cuda", 1) == torch.device(type="cuda", index=1) == second
    assert torch.device(1) == torch.device(torch.device("cuda:1")) == torch.device("cuda", index=1) == second
    assert torch.device(f"cuda:{0}") == torch.device("cuda:0") == first
    assert torch.device("cuda").index is None
    assert torch.device("cuda:1").index == 1
    assert torch.device("cuda") != torch.device("cuda:0")
    assert torch.device("cuda:0") != torch.device("cpu")


def check_other_devices_are_left_alone(target: Target) -> None:
    assert torch.device("cpu").type == "cpu"
    assert torch.device("cpu").type != "cuda"
    assert torch.device("meta", 0) == torch.device("meta:0")
    assert torch.device(type="cpu", index=0) == torch.device("cpu:0")
    for wrong in ("cudas", "cuda:x", "cuda:", "gpu"):
        with pytest.raises(RuntimeError):
            torch.device(wrong)
    with pytest.raises(TypeError):
        torch.device()
    for index in (-1, "1"):
        with pytest.raises((TypeError, RuntimeError)):
            torch.device("cuda", index)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="must not include an index"):
        torch.device("cuda:0", 1)


def check_type(target: Target) -> None:
    device = torch.device("cuda:1")
    assert device.type == "cuda" and device.type == target.type
    assert (device.type != "cuda") is False and device.type != "cpu"
    assert (
        operator.eq("cuda", device.type) and device.type in ("cuda", "xpu") and device.type in ["mps", "cuda"]
    )
    assert str(device) == f"{target.type}:1" and f"{device.type}" == target.type
    assert repr(device) == f"device(type='{target.type}', index=1)"
    assert "cuda" not in str(device)
    assert (
        "cuda" in device.type and device.type.startswith("cuda") and device.type.startswith(("cuda", "xpu"))
    )
    assert "cpu" not in device.type and not device.type.startswith("cpu") and target.type in device.type
    assert {target.type: 1}[device.type] == 1
    assert getattr(torch, device.type) is target.module
    assert type(pickle.loads(pickle.dumps(device.type))) is str


class Place(str, Enum):
    """How configuration libraries hold such a word."""

    CUDA = "cuda"


def check_words_of_other_classes(target: Target) -> None:
    assert torch.device(Place.CUDA) == torch.device("cuda")
    assert torch.zeros(1, device=Place.CUDA).is_cuda and torch.ones(1).to(Place.CUDA).is_cuda
    there = torch.ones(1, device="cuda:1")
    assert torch.zeros(1, device=there.device.type).is_cuda
    assert torch.device(there.device.type) == torch.device("cuda")
    assert torch.device(there.device.type, 1) == torch.device("cuda:1")
    assert torch.zeros(1, device=f"{there.device.type}:{there.device.index}").device.index == 1


def check_it_is_still_the_type(target: Target) -> None:
    device = torch.ones(1, device="cuda").device
    assert type(device) is torch.device and isinstance(device, torch.device)
    assert isinstance(torch.device("cuda"), torch.device)
    assert torch.device.__name__ == "device" and torch.device.__module__ == "torch"
    assert type(torch.Generator("cuda")) is torch.Generator


def check_copies_pickles_and_keys(target: Target) -> None:
    device = torch.device("cuda:1")
    for again in (pickle.loads(pickle.dumps(device)), copy.copy(device), copy.deepcopy(device)):
        assert again == device and hash(again) == hash(device)
    assert {torch.device("cuda:0"): "a", device: "b"}[torch.ones(1, device=1).device] == "b"
    assert copy.deepcopy({"device": device})["device"] == device


def check_a_pickle_that_a_gpu_wrote(target: Target) -> None:
    written = (
        pickle.dumps(torch.device("cpu", 1))
        .replace(b"cpu", b"cuda")
        .replace(b"\x8c\x03cuda", b"\x8c\x04cuda")
    )
    frame = written.index(b"\x95") + 1
    size = int.from_bytes(written[frame : frame + 8], "little") + 1
    written = written[:frame] + size.to_bytes(8, "little") + written[frame + 8 :]
    assert pickle.loads(written) == torch.device(target.type, 1)


def check_as_a_context(target: Target) -> None:
    with torch.device("cuda:1"):
        assert torch.ones(1).device.index == 1
        assert torch.nn.Linear(2, 2).weight.device == torch.device("cuda:1")
        with torch.device("cpu"):
            assert not torch.zeros(1).is_cuda
        assert torch.tensor([1]).is_cuda and torch.arange(3).is_cuda and torch.rand(2).is_cuda
        assert torch.ones(1, device="cpu").device.type == "cpu"
    assert not torch.ones(1).is_cuda


def check_default_device(target: Target) -> None:
    for default in ("cuda:1", torch.device("cuda", 1)):
        torch.set_default_device(default)
        assert torch.get_default_device() == torch.device("cuda:1")
        assert torch.empty(2).device == torch.nn.Linear(1, 1).weight.device == torch.device("cuda:1")
        torch.set_default_device("cpu")
        assert not torch.empty(2).is_cuda
    torch.set_default_device("cuda")
    torch.cuda.set_device(1)
    assert torch.ones(1).device.index == 1


def check_current_device(target: Target) -> None:
    torch.cuda.set_device(1)
    assert torch.cuda.current_device() == 1
    assert torch.ones(1, device="cuda").device.index == 1
    assert torch.ones(1).cuda().device.index == 1
    assert torch.ones(1).to("cuda").device.index == 1
    assert torch.nn.Linear(1, 1).cuda().weight.device.index == 1
    assert torch.tensor([1.0], device=torch.cuda.current_device()).device.index == 1
    with torch.cuda.device(0):
        assert torch.ones(1).cuda().device.index == 0
    with torch.cuda.device("cuda:0"), torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    torch.cuda.set_device("cuda:0")
    torch.cuda.set_device(torch.device("cuda", 1))
    assert torch.cuda.current_device() == 1


def check_generators(target: Target) -> None:
    for generator in (
        torch.Generator("cuda"),
        torch.Generator(device="cuda:1"),
        torch.Generator(torch.device("cuda")),
    ):
        assert generator.device.type == "cuda"
        drawn = torch.rand(4, generator=generator.manual_seed(3), device=generator.device)
        assert torch.equal(drawn, torch.rand(4, generator=generator.manual_seed(3), device=generator.device))
    assert torch.Generator().device.type == "cpu"
    assert torch.Generator(device="cpu").device.type == "cpu"
    assert torch.randperm(5, generator=torch.Generator("cuda"), device="cuda").is_cuda
    assert torch.cuda.default_generators[1].device.index == 1


def check_random_state(target: Target) -> None:
    torch.cuda.manual_seed_all(5)
    before, everywhere = torch.cuda.get_rng_state(), torch.cuda.get_rng_state_all()
    assert len(everywhere) == 2
    drawn = torch.randn(3, device="cuda")
    torch.cuda.set_rng_state(before)
    assert torch.equal(torch.randn(3, device="cuda"), drawn)
    torch.cuda.set_rng_state_all(everywhere)
    assert torch.equal(torch.randn(3, device="cuda"), drawn)
    torch.cuda.set_rng_state(before, device="cuda:0")
    with torch.random.fork_rng(devices=[0]):
        assert torch.equal(torch.randn(3, device="cuda"), drawn)
    with torch.random.fork_rng(devices=[torch.device("cuda:0")], device_type="cuda"):
        assert torch.equal(torch.randn(3, device="cuda"), drawn)
    with torch.random.fork_rng():
        torch.randn(3, device="cuda")
    assert torch.equal(torch.randn(3, device="cuda"), drawn)
    assert torch.cuda.initial_seed() == 5
    torch.manual_seed(9)
    assert torch.cuda.initial_seed() == 9


def check_ordinals_are_the_vendors_business(target: Target) -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1, device="cuda:7")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1).cuda(7)


def check_modules_by_device(target: Target) -> None:
    if not hasattr(torch, "get_device_module"):
        return
    for said in ("cuda", torch.device("cuda"), torch.ones(1, device="cuda").device):
        assert torch.get_device_module(said) is target.module
