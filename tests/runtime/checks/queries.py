"""What programs ask of a GPU before and while they train: capability, properties, memory, streams, events, flags."""

from __future__ import annotations

import os
import warnings

import pytest
import torch
import torch.cuda.comm

from tests.sim.checking import Target
from torchferry import runtime


def check_capability_and_properties(target: Target) -> None:
    assert torch.cuda.get_device_capability() == torch.cuda.get_device_capability("cuda:1") == (8, 0)
    for said in (0, "cuda:1", torch.device("cuda")):
        properties = torch.cuda.get_device_properties(said)
        assert (properties.major, properties.minor) == (8, 0)
        assert properties.total_memory == 2**30
        assert properties.multi_processor_count >= 1 and properties.warp_size == 32
        assert properties.name == torch.cuda.get_device_name(0)
        assert {"name", "major", "total_memory"} <= set(dir(properties))
        with pytest.raises(AttributeError):
            _ = properties.no_such_field
    assert isinstance(torch.cuda.is_bf16_supported(), bool)
    assert torch.cuda.is_initialized()
    torch.cuda.init()
    assert torch.cuda.can_device_access_peer(0, 1) in (True, False)


def check_version(target: Target) -> None:
    """Without the user's word torch.version.cuda says what PyTorch was built for, nothing as a rule."""
    assert "torch.version.cuda" not in {change.name for change in runtime.changes()}
    assert torch.backends.cuda.is_built()


def check_flags_of_backends(target: Target) -> None:
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = True, True
    assert cudnn.benchmark and cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = before
    with cudnn.flags(enabled=False, benchmark=False):
        torch.nn.Conv2d(1, 1, 1).cuda()(torch.ones(1, 1, 2, 2).cuda())
    assert cudnn.enabled in (True, False)
    assert cudnn.version() is None or cudnn.version() > 0
    matmul = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.matmul.allow_tf32 = matmul
    torch.set_float32_matmul_precision("high")
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.use_deterministic_algorithms(False)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_flash_sdp(True)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        q = torch.ones(1, 1, 2, 4, device="cuda")
        assert torch.nn.functional.scaled_dot_product_attention(q, q, q).is_cuda


def check_memory(target: Target) -> None:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    held = torch.ones(1024, 256, device="cuda")
    block = -(-(held.nbytes + target.vendor.limits.block_padding) // 512) * 512
    assert torch.cuda.memory_allocated() - before == block
    assert torch.cuda.memory_allocated("cuda:0") == torch.cuda.memory_allocated(0)
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total == 2**30
    assert "allocated" in torch.cuda.memory_summary().lower()
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        torch.empty(2**30, device="cuda")
    with pytest.raises(RuntimeError, match="out of memory"):
        torch.empty(2**30, device="cuda")
    del held


def check_streams_and_events(target: Target) -> None:
    stream = torch.cuda.Stream()
    value = torch.ones(3, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        doubled = value * 2
    torch.cuda.current_stream().wait_stream(stream)
    doubled.record_stream(torch.cuda.current_stream())
    assert doubled.tolist() == [2, 2, 2]
    with torch.cuda.stream(None):
        pass
    assert torch.cuda.Stream(device="cuda:1", priority=-1).device == torch.device("cuda:1")
    assert torch.cuda.default_stream(1).device.index == 1
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True, blocking=True)
    start.record()
    end.record(torch.cuda.current_stream())
    end.synchronize()
    torch.cuda.synchronize()
    torch.cuda.synchronize("cuda:1")
    torch.cuda.current_stream().synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    stream.wait_event(end)
    event = stream.record_event()
    event.wait()
    assert isinstance(stream, torch.cuda.Stream) and isinstance(event, torch.cuda.Event)


def check_general_streams(target: Target) -> None:
    if not hasattr(torch, "accelerator"):
        return
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.Stream(device="cuda:1").device == torch.Stream("cuda:1").device == torch.device("cuda:1")
    assert torch.Event("cuda").device == torch.Event(device="cuda").device == torch.device("cuda")


def check_copies_between_devices(target: Target) -> None:
    comm, value = torch.cuda.comm, torch.arange(4.0, device="cuda")
    copies = comm.broadcast(value, [0, 1])
    assert [one.device.index for one in copies] == [0, 1] and torch.equal(copies[1].cpu(), value.cpu())
    assert [len(one) for one in comm.broadcast_coalesced([value, value], [0, 1])] == [2, 2]
    total = comm.reduce_add([value, value.to(1)], destination=1)
    assert total.device.index == 1 and total.tolist() == [0, 2, 4, 6] and value.tolist() == [0, 1, 2, 3]
    (total,) = comm.reduce_add_coalesced([[value], [value.to(1)]])
    assert total.tolist() == [0, 2, 4, 6]
    parts = comm.scatter(value, [0, "cuda:1"])
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3]] and parts[1].device.index == 1
    assert [len(part) for part in comm.scatter(value, [0, 1], chunk_sizes=[3, 1])] == [3, 1]
    assert comm.gather(parts).device.index == 0
    assert (
        comm.gather(parts, destination="cpu").tolist()
        == comm.gather(parts, destination=-1).tolist()
        == [0, 1, 2, 3]
    )


def check_parallel_in_one_process(target: Target) -> None:
    if not target.vendor.limits.data_parallel_message:
        return
    with pytest.raises(Exception) as raised:
        torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda(), device_ids=[0, 1])(torch.ones(2, 2).cuda())
    assert "DistributedDataParallel" in str(raised.value)


def check_environment_variables(target: Target) -> None:
    """Set while the program runs: the vendor's variable follows, the value of the host's stays."""
    own = target.vendor.visible_devices_env
    assert own not in os.environ
    os.environ["CUDA_VISIBLE_DEVICES"] = "1,0"
    assert os.environ[own] == "1,0" == os.getenv(own)
    os.environ.update(CUDA_VISIBLE_DEVICES="0")
    assert os.environ[own] == "0"
    os.environ["SOMETHING_ELSE"] = "1"
    del os.environ["SOMETHING_ELSE"], os.environ["CUDA_VISIBLE_DEVICES"]
    assert own not in os.environ and "CUDA_VISIBLE_DEVICES" not in os.environ
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
    assert os.environ[own] == "0" and os.environ.pop("CUDA_VISIBLE_DEVICES") == "0"
    assert own not in os.environ


def check_migrations_of_the_vendor_have_nothing_to_do(target: Target) -> None:
    """A program that imports the vendor's own migration beside the layer runs as well."""
    before = torch.cuda.is_available, torch.Tensor.cuda, torch.device
    for name in target.vendor.migrations:
        __import__(name)
    assert before == (torch.cuda.is_available, torch.Tensor.cuda, torch.device)


def check_warnings_of_deprecated_names(target: Target) -> None:
    """torch.cuda.amp's names work; that they are deprecated is PyTorch's or the vendor's word, not an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.cuda.amp.autocast(enabled=True, dtype=torch.float16, cache_enabled=False):
            assert torch.is_autocast_enabled("cuda")
