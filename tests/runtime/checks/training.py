"""Parts of training programs: optimizers, checkpointing, data loaders, profilers, process groups of one."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from tests.sim.checking import Target


def _trained(optimizer: Any, model: torch.nn.Module, steps: int = 2) -> float:
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
    return float(loss)


def check_optimizers(target: Target) -> None:
    optim = torch.optim
    for kind, settings in (
        (optim.SGD, {"momentum": 0.9}),
        (optim.Adam, {"foreach": True}),
        (optim.AdamW, {"fused": True}),
        (optim.Adam, {"fused": True}),
        (optim.SGD, {"fused": True}),
        (optim.Adam, {"capturable": True}),
        (optim.AdamW, {"amsgrad": True}),
        (optim.RMSprop, {"foreach": True}),
    ):
        model = torch.nn.Linear(3, 1).cuda()
        before = model.weight.detach().clone()
        assert _trained(kind(model.parameters(), lr=0.01, **settings), model) > 0
        assert not torch.equal(model.weight, before), (kind, settings)


def check_checkpointing(target: Target) -> None:
    for reentrant in (True, False):
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)).cuda()
        value = torch.ones(4, 3, device="cuda", requires_grad=True)
        with torch.autocast("cuda", dtype=torch.float16):
            result = checkpoint(model, value, use_reentrant=reentrant)
        assert result.dtype == torch.float16
        result.float().sum().backward()
        assert value.grad is not None and value.grad.is_cuda


def check_copies_of_models(target: Target) -> None:
    model = torch.nn.BatchNorm1d(3).cuda(1)
    assert copy.deepcopy(model).weight.device.index == 1
    assert {value.device.index for value in model.state_dict().values()} == {1}


def _on_device(batch: list[torch.Tensor]) -> bool:
    assert all(one.is_pinned() for one in batch)
    return all(one.cuda(non_blocking=True).is_cuda for one in batch)


def check_loaders(target: Target) -> None:
    data = TensorDataset(torch.arange(6.0), torch.arange(6))
    for settings in (
        {},
        {"num_workers": 1, "multiprocessing_context": "fork"},
        {"pin_memory_device": "cuda"},
    ):
        loader = DataLoader(data, batch_size=3, pin_memory=True, **settings)  # type: ignore[arg-type]
        assert [_on_device(batch) for batch in loader] == [True, True]
    generator = torch.Generator().manual_seed(0)
    assert len(list(DataLoader(data, batch_size=2, shuffle=True, generator=generator))) == 3


def check_profilers(target: Target) -> None:
    from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

    value = torch.ones(3, device="cuda")
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=kinds, record_shapes=True) as profiler, record_function("step"):
        value * 2
    assert isinstance(profiler, profile)
    table = profiler.key_averages().table(sort_by="cpu_time_total")
    is_vendors_own = not type(profiler).__module__.startswith("torch.")
    assert ("step" in table) != is_vendors_own  # whose tables are in the files that it writes
    with profile() as profiler:
        value * 2
    with profile(activities=[ProfilerActivity.CUDA]):
        value * 2
    with tempfile.TemporaryDirectory() as folder:
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
            schedule=schedule(wait=1, warmup=1, active=1, repeat=1),
            on_trace_ready=tensorboard_trace_handler(folder),
            profile_memory=True,
            with_stack=False,
        ) as profiler:
            for _ in range(4):
                value * 2
                profiler.step()
        assert list(Path(folder).rglob("*")) != []


def check_the_old_profiler(target: Target) -> None:
    value = torch.ones(3, device="cuda")
    for settings in ({"use_cuda": True}, {"use_device": "cuda"}, {}):
        with torch.autograd.profiler.profile(**settings) as profiler:  # type: ignore[arg-type]
            value * 2
        assert "aten::mul" in str(profiler.key_averages().table())
    with torch.autograd.profiler.emit_nvtx(), torch.autograd.profiler.record_function("a"):
        value * 2


def _group(folder: str, **settings: Any) -> None:
    dist.init_process_group(init_method=f"file://{folder}/store", rank=0, world_size=1, **settings)


def check_groups_of_one(target: Target) -> None:
    from torch.nn.parallel import DistributedDataParallel

    ways: list[dict[str, Any]] = [
        {"backend": "nccl"},
        {"backend": "NCCL"},
        {"backend": "cpu:gloo,cuda:nccl"},
        {"backend": "nccl", "device_id": torch.device("cuda:0")},
        {"backend": dist.Backend.NCCL},
    ]
    assert dist.is_nccl_available()
    for settings in ways:
        with tempfile.TemporaryDirectory() as folder:
            _group(folder, **settings)
            try:
                total = torch.ones(2, device="cuda")
                dist.all_reduce(total)
                dist.barrier()
                if ":" not in settings["backend"]:
                    assert dist.get_backend() == "nccl" and dist.get_backend() == target.vendor.dist_backend
                assert dist.get_backend(dist.new_group([0], backend="nccl")) == "nccl"
                assert dist.get_backend(dist.new_group([0], backend="gloo")) == "gloo"
                model = DistributedDataParallel(torch.nn.Linear(3, 1).cuda(), device_ids=[0], output_device=0)
                assert _trained(torch.optim.SGD(model.parameters(), lr=0.1), model) > 0
            finally:
                dist.destroy_process_group()


def check_barriers_take_devices(target: Target) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _group(folder, backend="nccl")
        try:
            dist.barrier(device_ids=[0])
            objects = [None]
            dist.all_gather_object(objects, {"loss": 1.0})
            assert objects == [{"loss": 1.0}]
            dist.broadcast_object_list([1], src=0, device=torch.device("cuda"))
        finally:
            dist.destroy_process_group()
