"""What programs written for GPUs do, to be run after a vendor's migration was imported."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.cuda import amp
from torch.cuda.amp import GradScaler, autocast

DEVICE_TYPE = torch._C._get_privateuse1_backend_name()


def is_there(tensor: torch.Tensor, index: int = 0) -> bool:
    return tensor.is_cuda and str(tensor.device) == f"{DEVICE_TYPE}:{index}"


def devices() -> None:
    """Choosing devices and asking about them."""
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    torch.cuda.set_device(torch.device("cuda:1"))
    assert torch.cuda.current_device() == 1
    torch.cuda.set_device("cuda:0")
    with torch.cuda.device("cuda:1"):
        assert torch.cuda.current_device() == 1
        assert is_there(torch.ones(1, device="cuda"), 1)
    assert torch.cuda.current_device() == 0
    torch.cuda.synchronize("cuda:0")
    assert torch.cuda.get_device_name("cuda:0") == torch.cuda.get_device_name(0)
    torch.cuda.empty_cache()


def tensors() -> None:
    """Tensors made on, and moved to, devices in every spelling."""
    cuda = torch.device("cuda", 0)
    made = [torch.zeros(2, device="cuda"), torch.ones(2, device=cuda), torch.tensor([1.0], device="cuda:0")]
    made += [
        torch.randn(2, device=cuda),
        torch.arange(3, device="cuda"),
        torch.full((2,), 3.0, device="cuda:0"),
    ]
    made += [
        torch.ones(2).cuda(),
        torch.ones(2).cuda(0),
        torch.ones(2).cuda("cuda:0"),
        torch.ones(2).to("cuda"),
    ]
    made += [torch.ones(2).to(cuda, non_blocking=True), torch.ones(2).to(device=cuda), torch.ones(2).to(0)]
    made += [torch.zeros_like(torch.ones(2), device="cuda"), torch.ones(2).new_zeros(2, device=cuda)]
    made += [torch.cuda.FloatTensor([1.0, 2.0]), torch.ones(2).type("torch.cuda.FloatTensor")]
    made += [torch.as_tensor([1.0], device="cuda"), torch.linspace(0, 1, 3, device="cuda")]
    assert all(map(is_there, made)), [tensor.device for tensor in made]
    assert is_there(torch.ones(2, device="cuda:1"), 1)
    assert not torch.ones(2).is_cuda
    with torch.device("cuda"):
        assert is_there(torch.ones(2))
    generator = torch.Generator(device="cuda").manual_seed(3)
    first = torch.randn(4, device="cuda", generator=generator)
    assert torch.equal(first, torch.randn(4, device="cuda", generator=generator.manual_seed(3)))
    assert isinstance(generator, torch.Generator) and isinstance(torch.default_generator, torch.Generator)


def training() -> None:
    """Mixed precision, streams and events."""
    torch.cuda.manual_seed_all(0)
    net = nn.Sequential(nn.Linear(4, 8, device="cuda"), nn.ReLU(), nn.Linear(8, 2)).cuda()
    assert all(is_there(param) for param in net.parameters())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scalers = [GradScaler(), amp.GradScaler(), torch.amp.GradScaler(), torch.amp.GradScaler("cuda")]
    losses = []
    data, target = torch.randn(8, 4).cuda(non_blocking=True), torch.randint(2, (8,)).cuda()
    contexts = [
        autocast,
        amp.autocast,
        lambda: torch.autocast("cuda"),
        lambda: torch.autocast(device_type="cuda"),
    ]
    for context, scaler in zip(contexts * 2, scalers * 2, strict=True):
        optimizer.zero_grad()
        with context():
            output = net(data)
            loss = nn.functional.cross_entropy(output, target)
        assert output.dtype == torch.float16
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(scaler.is_enabled() for scaler in scalers)
    assert torch.cuda.max_memory_allocated() > 0
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        (data * 2).sum()
    torch.cuda.current_stream().wait_stream(stream)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0


def files() -> None:
    """Checkpoints loaded onto devices."""
    buffer = io.BytesIO()
    torch.save({"weight": torch.arange(3.0)}, buffer)
    for where in (
        "cuda",
        "cuda:1",
        torch.device("cuda:0"),
        {"cpu": "cuda:0"},
        lambda storage, _: storage.cuda(0),
    ):
        buffer.seek(0)
        assert torch.load(buffer, map_location=where)["weight"].is_cuda, where
    again = io.BytesIO()
    torch.save(torch.arange(3.0).cuda(), again)
    again.seek(0)
    assert is_there(torch.load(again))
    again.seek(0)
    assert is_there(torch.load(again, map_location={"cuda:0": "cuda:1"}), 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "of-a-gpu.pt"
        torch.save(torch.arange(3.0).cuda(), path)
        path.write_bytes(path.read_bytes())
        assert is_there(torch.load(path, map_location="cuda:1"), 1)


def groups(backend: str) -> None:
    """Collectives and DDP; `backend` is what NCCL is called here."""
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
    with tempfile.TemporaryDirectory() as folder:
        assert dist.is_nccl_available()
        dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
        assert dist.get_backend() == backend
        total = torch.ones(3, device="cuda")
        dist.all_reduce(total)
        assert torch.equal(total.cpu(), torch.ones(3))
        net = nn.parallel.DistributedDataParallel(nn.Linear(3, 1).cuda(), device_ids=[0])
        net(total).sum().backward()
        dist.new_group([0], backend="nccl")
        dist.destroy_process_group()
