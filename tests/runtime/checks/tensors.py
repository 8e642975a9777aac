"""What makes and what moves tensors and modules takes CUDA's words: strings, numbers, devices, all keywords."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from tests.sim.checking import Target
from torchferry import runtime

# Operators with a device among their arguments that are no factories which programs call.
NOT_CALLED = {
    "Generator": "a type with a constructor of its own",
    "eq": "compares devices in TorchScript",
    "ne": "compares devices in TorchScript",
}
FACTORIES: dict[str, tuple[Any, ...]] = {
    "arange": (3,),
    "as_tensor": ([1.0],),
    "asarray": ([1.0],),
    "bartlett_window": (4,),
    "blackman_window": (4,),
    "empty": (2, 3),
    "empty_permuted": ((2, 3), (0, 1)),
    "empty_strided": ((2, 3), (3, 1)),
    "eye": (3,),
    "full": ((2,), 1.0),
    "hamming_window": (4,),
    "hann_window": (4,),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "normal": (0.0, 1.0, (2,)),
    "ones": (2,),
    "rand": (2,),
    "randint": (0, 5, (2,)),
    "randn": (2,),
    "randperm": (4,),
    "scalar_tensor": (1.0,),
    "tensor": ([1.0],),
    "tril_indices": (3, 3),
    "triu_indices": (3, 3),
    "zeros": (2,),
    "fft.fftfreq": (4,),
    "fft.rfftfreq": (4,),
}


def _at(name: str) -> Any:
    value: Any = torch
    for part in name.split("."):
        value = getattr(value, part)
    return value


def check_factories(target: Target) -> None:
    second = torch.device(target.type, 1)
    for name, arguments in FACTORIES.items():
        function = _at(name)
        for said in ("cuda:1", 1, torch.device("cuda:1"), torch.device("cuda", 1)):
            assert function(*arguments, device=said).device == second, name
        assert function(*arguments, device="cuda").device.index == 0, name
        assert function(*arguments, device="cpu").device.type == "cpu", name
        assert function(*arguments, device=None).device.type == "cpu", name
        assert function(*arguments).device.type == "cpu", name


def check_the_list_of_factories_is_whole(target: Target) -> None:
    """Every operator of this torch that takes a device, under every public name that it has."""
    takes_device = {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::")
        and any(argument.name == "device" or "Device" in str(argument.type) for argument in schema.arguments)
    }
    changed = {change.name for change in runtime.changes()}
    places = {
        "torch": torch,
        "torch.Tensor": torch.Tensor,
        "torch.fft": torch.fft,
        "torch.nested": torch.nested,
    }
    missed = []
    for name in sorted(takes_device - NOT_CALLED.keys()):
        for place, owner in places.items():
            short = name.removeprefix("fft_") if place == "torch.fft" else name
            if not short.startswith("_") and hasattr(owner, short) and f"{place}.{short}" not in changed:
                missed.append(f"{place}.{short}")
    assert len(takes_device) > 50
    assert missed == []


def check_like_and_new(target: Target) -> None:
    host, second = torch.ones(2, 3), torch.device(target.type, 1)
    for name in ("empty_like", "ones_like", "zeros_like", "rand_like", "randn_like"):
        function = getattr(torch, name)
        for said in ("cuda:1", 1, second):
            assert function(host, device=said).device == second, name
        assert function(host.to(1)).device == second
        assert function(host, device="cuda", dtype=torch.float16).dtype == torch.float16
    assert torch.full_like(host, 2.0, device="cuda:1").device == second
    assert torch.randint_like(host, 5, device=1).device == second
    assert host.new_zeros(2, device="cuda:1").device == host.new_ones((2,), device=1).device == second
    assert host.new_full((2,), 1.0, device="cuda:1").device == host.new_empty(2, device=1).device == second
    assert host.new_tensor([1.0], device="cuda:1").device == second
    assert host.new_empty_strided((2,), (1,), device="cuda:1").device == second
    assert host.to(1).new(2, 2).device == second
    assert host.to(1).new_tensor([1.0]).device == second


def check_cuda_method(target: Target) -> None:
    host, second = torch.ones(2, 3), torch.device(target.type, 1)
    for moved in (host.cuda(1), host.cuda("cuda:1"), host.cuda(torch.device("cuda:1")), host.cuda(device=1)):
        assert moved.device == second and moved.is_cuda
    assert host.cuda().device.index == host.cuda(None).device.index == host.cuda("cuda").device.index == 0
    assert host.cuda(1, True).device == host.cuda(device="cuda:1", non_blocking=True).device == second
    assert host.cuda(non_blocking=True).is_cuda
    image = torch.ones(1, 2, 3, 4).cuda(memory_format=torch.channels_last)
    assert image.is_contiguous(memory_format=torch.channels_last)
    there = host.cuda()
    assert there.cuda() is there
    for wrong in ("cpu", torch.device("cpu")):
        with pytest.raises(RuntimeError, match="must be a CUDA device"):
            host.cuda(wrong)
    assert not host.is_cuda and not there.cpu().is_cuda
    assert there.get_device() == 0 and host.cuda(1).get_device() == 1


def check_to(target: Target) -> None:
    host, second = torch.ones(2, 3), torch.device(target.type, 1)
    other = host.half().cuda(1)
    for moved in (
        host.to("cuda:1"),
        host.to(1),
        host.to(second),
        host.to(device="cuda:1"),
        host.to(device=1),
        host.to("cuda:1", non_blocking=True),
        host.to("cuda:1", torch.float16),
        host.to("cuda:1", torch.float16, True, copy=True),
        host.to("cuda:1", dtype=torch.float16, memory_format=torch.contiguous_format),
        host.to(other),
        host.to(dtype=torch.float16, device=1),
    ):
        assert moved.device == second
    assert host.to(other).dtype == torch.float16
    assert host.to(torch.float16).device.type == "cpu"
    there = host.to("cuda")
    assert there.to("cuda") is there and there.to("cuda:0") is there and there.to(0) is there
    assert there.to("cuda", copy=True) is not there
    assert there.to("cpu").device.type == "cpu"
    assert torch.ones(1, device="cuda:0").to(1).device == second


def check_pinned_memory(target: Target) -> None:
    host = torch.ones(2)
    assert host.pin_memory().is_pinned() and not host.is_pinned()
    assert host.pin_memory("cuda").is_pinned("cuda")
    assert torch.empty(2, pin_memory=True).is_pinned()
    assert torch.equal(host.pin_memory().cuda(non_blocking=True).cpu(), host)


def check_modules(target: Target) -> None:
    second = torch.device(target.type, 1)
    make = lambda: torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))  # noqa: E731
    for moved in (
        make().cuda(1),
        make().cuda(torch.device("cuda:1")),
        make().cuda(device="cuda:1"),
        make().to("cuda:1"),
        make().to(1),
        make().to(second),
        make().to(device="cuda:1"),
        make().to(torch.ones(1, device=1)),
        make().to("cuda:1", torch.float16, non_blocking=True),
        make().to(memory_format=torch.channels_last).to(1),
    ):
        assert {one.device for one in (*moved.parameters(), *moved.buffers())} == {second}
    assert make().cuda()[0].weight.is_cuda
    assert make().cuda().cpu()[0].weight.device.type == "cpu"
    assert torch.nn.Linear(2, 2, device="cuda:1").weight.device == second
    empty = torch.nn.Linear(2, 2, device="meta").to_empty(device="cuda:1")
    assert empty.weight.device == second
    assert torch.nn.Linear(2, 2, device="meta").to_empty(device=1).weight.device == second
    assert torch.nn.Embedding(3, 2, device=1).weight.device == second


def check_packed_sequences(target: Target) -> None:
    packed = pack_padded_sequence(torch.ones(3, 2, 1), torch.tensor([3, 2]))
    for moved in (packed.cuda(), packed.to("cuda"), packed.to(0), packed.cuda(non_blocking=True)):
        assert moved.is_cuda and moved.data.is_cuda
    assert packed.to("cuda:1").data.device.index == 1


def check_modules_without_shapes(target: Target) -> None:
    for layer in (torch.nn.LazyLinear(2).cuda(), torch.nn.LazyLinear(2).to("cuda")):
        assert layer.weight.device.type == target.type
        assert layer(torch.ones(1, 3, device="cuda")).device == layer.weight.device


def check_parameters_and_storages(target: Target) -> None:
    parameter = torch.nn.Parameter(torch.ones(2)).cuda(1)
    assert parameter.device.index == 1
    storage = torch.ones(4, device="cuda:1").untyped_storage()
    assert storage.device == torch.device("cuda:1")
    assert storage.is_cuda
    assert torch.UntypedStorage(8, device="cuda:1").device == torch.device("cuda:1")
    assert torch.ones(2).untyped_storage().cuda().device.type == "cuda"
    assert torch.tensor([1.0, 2.0]).storage().cuda().device.type == "cuda"


def check_typed_tensors(target: Target) -> None:
    Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor  # noqa: N806
    assert Tensor(2, 3).is_cuda and Tensor(2, 3).shape == (2, 3)
    assert Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert Tensor(torch.Size([2])).is_cuda
    assert torch.cuda.LongTensor([3]).dtype == torch.int64
    assert torch.cuda.ByteTensor(2).dtype == torch.uint8 and torch.cuda.HalfTensor(2).dtype == torch.float16
    there = torch.ones(2, device="cuda")
    assert isinstance(there, torch.cuda.FloatTensor) and not isinstance(there, torch.FloatTensor)
    assert not isinstance(there.cpu(), torch.cuda.FloatTensor) and not isinstance(
        there.half(), torch.cuda.FloatTensor
    )
    assert there.type() == "torch.cuda.FloatTensor" == there.type()
    assert there.type() == f"torch.{target.type}.FloatTensor" and there.cpu().type() == "torch.FloatTensor"
    for moved in (
        torch.ones(2).type("torch.cuda.HalfTensor"),
        torch.ones(2).type(torch.cuda.HalfTensor),
        torch.ones(2).type(dtype="torch.cuda.HalfTensor"),
        torch.ones(2).type(there.half().type()),
        torch.ones(2).type_as(there.half()),
    ):
        assert moved.is_cuda and moved.dtype == torch.float16
    assert there.type(torch.float16).is_cuda and there.type("torch.FloatTensor").device.type == "cpu"
    assert there.type(torch.cuda.FloatTensor) is there


def check_default_tensor_type(target: Target) -> None:
    try:
        for default in ("torch.cuda.FloatTensor", torch.cuda.FloatTensor):
            torch.set_default_tensor_type(default)
            assert torch.ones(2).is_cuda and torch.tensor([1.0]).is_cuda
            assert torch.nn.Linear(2, 2).weight.is_cuda
            torch.set_default_tensor_type("torch.FloatTensor")
            assert not torch.ones(2).is_cuda
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)


def check_signatures_are_kept(target: Target) -> None:
    assert torch.tensor.__doc__ and torch.zeros.__doc__
    assert "non_blocking" in inspect.signature(torch.Tensor.cuda).parameters
    with pytest.raises(TypeError):
        torch.zeros(2, device=1.5)
    with pytest.raises(TypeError):
        torch.zeros(2, device=[0])
