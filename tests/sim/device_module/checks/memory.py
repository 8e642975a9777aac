"""Memory: counters, limits, raw allocations, snapshots."""

from __future__ import annotations

import gc
import pickle
import tempfile
from pathlib import Path

import pytest
import torch

from tests.sim.checking import Target
from tests.sim.device_module.names import lookup

MIB = 2**20


def check_a_tensor_is_counted_on_its_device_and_no_longer_when_it_is_gone(target: Target) -> None:
    gc.collect()
    before = [target.module.memory_allocated(device) for device in (0, 1)]
    tensor = torch.empty(8 * MIB, dtype=torch.uint8, device=f"{target.type}:1")
    assert target.module.memory_allocated(0) == before[0]
    assert target.module.memory_allocated(f"{target.type}:1") - before[1] >= 8 * MIB
    assert target.module.memory_reserved(1) >= target.module.memory_allocated(1)
    del tensor
    assert target.module.memory_allocated(1) == before[1]


def check_blocks_are_of_512_bytes_after_the_padding(target: Target) -> None:
    for size in (1, 480, 481, 512, 5000):
        before = target.module.memory_allocated(0)
        tensor = torch.empty(size, dtype=torch.uint8, device=f"{target.type}:0")
        taken = target.module.memory_allocated(0) - before
        assert taken == -(-(size + target.vendor.limits.block_padding) // 512) * 512
        del tensor


def check_the_peak_stays_until_it_is_reset(target: Target) -> None:
    target.module.reset_peak_memory_stats()
    low = target.module.max_memory_allocated()
    tensor = torch.empty(16 * MIB, dtype=torch.uint8, device=target.type)
    del tensor
    assert target.module.max_memory_allocated() - low >= 16 * MIB
    assert target.module.max_memory_reserved() >= target.module.max_memory_allocated()
    target.module.reset_max_memory_allocated()
    assert target.module.max_memory_allocated() == target.module.memory_allocated()


def check_statistics_have_torchs_names(target: Target) -> None:
    tensor = torch.empty(MIB, dtype=torch.uint8, device=target.type)
    flat = target.module.memory_stats()
    assert list(flat) == sorted(flat)
    assert flat["allocated_bytes.all.current"] == target.module.memory_allocated()
    assert flat["allocated_bytes.all.peak"] == target.module.max_memory_allocated()
    assert flat["reserved_bytes.all.current"] == target.module.memory_reserved()
    assert flat["active_bytes.all.peak"] == target.module.max_memory_allocated()
    assert flat["allocation.all.current"] > 0
    if hasattr(target.module, "memory_stats_as_nested_dict"):
        nested = target.module.memory_stats_as_nested_dict()
        assert nested["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"]
    del tensor


def check_out_of_memory_is_counted_and_raises_the_vendors_error(target: Target) -> None:
    before = target.module.memory_stats()["num_ooms"]
    with pytest.raises(torch.cuda.OutOfMemoryError, match="out of memory"):
        torch.empty(2 * 2**30, dtype=torch.uint8, device=target.type)
    assert target.module.memory_stats()["num_ooms"] == before + 1
    named = target.vendor.api("torch.cuda.OutOfMemoryError").name
    assert issubclass(lookup(named), RuntimeError)
    with pytest.raises(lookup(named)):
        torch.empty(2 * 2**30, dtype=torch.uint8, device=target.type)


def check_free_and_total(target: Target) -> None:
    target.module.empty_cache()
    free, total = target.module.mem_get_info()
    assert total == 2**30
    assert free == total - target.module.memory_reserved()


def check_a_fraction_limits_this_process(target: Target) -> None:
    target.module.set_per_process_memory_fraction(0.25)
    try:
        with pytest.raises(RuntimeError, match="out of memory"):
            torch.empty(300 * MIB, dtype=torch.uint8, device=target.type)
        assert target.module.mem_get_info()[1] == 2**30
        if hasattr(target.module, "get_per_process_memory_fraction"):
            assert target.module.get_per_process_memory_fraction() == 0.25
    finally:
        target.module.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match="fraction"):
        target.module.set_per_process_memory_fraction(1.5)


def check_raw_allocations_are_counted(target: Target) -> None:
    if not hasattr(target.module, "caching_allocator_alloc"):
        return
    before = target.module.memory_allocated()
    address = target.module.caching_allocator_alloc(4 * MIB)
    assert target.module.memory_allocated() - before >= 4 * MIB
    target.module.caching_allocator_delete(address)
    assert target.module.memory_allocated() == before
    with pytest.raises(RuntimeError, match="not allocated"):
        target.module.caching_allocator_delete(address)


def check_the_summary_shows_the_numbers(target: Target) -> None:
    tensor = torch.empty(3 * MIB, dtype=torch.uint8, device=target.type)
    target.module.reset_peak_memory_stats()
    text = target.module.memory_summary()
    assert "1.0 GiB" in text
    assert len(target.module.memory_summary(abbreviated=True)) < len(text)
    del tensor


def check_the_snapshot_agrees_with_the_counters(target: Target) -> None:
    tensor = torch.empty(MIB, dtype=torch.uint8, device=f"{target.type}:1")
    segments = {entry["device"]: entry for entry in target.module.memory_snapshot()}
    assert segments[1]["allocated_size"] == target.module.memory_allocated(1)
    if hasattr(target.module.memory, "_dump_snapshot"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "snapshot.pickle"
            target.module.memory._dump_snapshot(str(file))
            assert pickle.loads(file.read_bytes())["segments"] == target.module.memory_snapshot()
    del tensor
