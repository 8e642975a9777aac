"""torch.cuda on the CPU: what a program asks of CUDA's devices, answered by the host."""

from __future__ import annotations

import threading
import time
import warnings
from types import ModuleType
from typing import Any

import pytest
import torch

from torchferry.errors import RunError
from torchferry.runtime.host.module import host_module
from torchferry.units import size


@pytest.fixture
def cuda() -> Any:
    return host_module(4)


def test_there_are_as_many_devices_as_asked_for(cuda: Any) -> None:
    assert (cuda.is_available(), cuda.device_count(), cuda.current_device()) == (True, 4, 0)
    assert (cuda.is_initialized(), cuda._is_in_bad_fork()) == (True, False)
    cuda._lazy_init()
    cuda.init()
    with pytest.raises(RunError, match="not for 0"):
        host_module(0)


@pytest.mark.parametrize("device", [2, "cuda:2", torch.device("cpu", 2)])
def test_a_device_is_named_in_every_way(cuda: Any, device: Any) -> None:
    cuda.set_device(device)
    assert cuda.current_device() == 2
    cuda.set_device("cuda")
    cuda.set_device(-1)
    assert cuda.current_device() == 2


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "npu:1", "nonsense"])
def test_what_is_no_device_of_cudas_is_refused(cuda: Any, device: Any) -> None:
    with pytest.raises(ValueError, match="Expected a cuda device"):
        cuda.set_device(device)


def test_the_host_as_such_has_no_index(cuda: Any) -> None:
    assert cuda._get_device_index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="Expected a cuda device"):
        cuda._get_device_index(None, optional=False)


def test_a_device_that_is_not_there_raises(cuda: Any) -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal: 4"):
        cuda.set_device(4)
    for ask in (cuda.get_device_name, cuda.get_device_properties, cuda.memory_allocated, cuda.synchronize):
        with pytest.raises(AssertionError, match="Invalid device id: 4"):
            ask(4)


def test_the_context_comes_back_also_after_an_error(cuda: Any) -> None:
    with pytest.raises(KeyError), cuda.device(1):
        with cuda.device(None), cuda.device(-1), cuda.device("cuda:3"):
            assert cuda.current_device() == 3
        assert cuda.current_device() == 1
        raise KeyError
    with cuda.device_of(torch.ones(1)), cuda._DeviceGuard(2):
        assert cuda.current_device() == 2
    assert cuda.current_device() == 0
    assert (cuda._exchange_device(1), cuda._exchange_device(-1), cuda._maybe_exchange_device(0)) == (0, -1, 1)


def test_each_thread_has_its_own_current_device_and_stream(cuda: Any) -> None:
    cuda.set_device(3)
    cuda.set_stream(cuda.Stream())
    seen: list[tuple[int, int]] = []
    thread = threading.Thread(
        target=lambda: seen.append((cuda.current_device(), cuda.current_stream().stream_id))
    )
    thread.start()
    thread.join()
    assert seen == [(0, 0)]
    assert cuda.current_device() == 3


def test_name_properties_and_memory_are_the_hosts(cuda: Any) -> None:
    properties = cuda.get_device_properties("cuda:1")
    assert properties.name == cuda.get_device_name() != ""
    free, total = cuda.mem_get_info()
    assert 0 < free < total == properties.total_memory
    assert cuda.device_memory_used() > 0
    assert properties.multi_processor_count > 0
    assert 0 <= cuda.utilization() <= 100
    assert (cuda.can_device_access_peer(0, 1), cuda.can_device_access_peer(1, 1)) == (True, False)


def test_nothing_is_counted_on_a_device(cuda: Any) -> None:
    counters = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    kept = torch.ones(1000)
    assert [getattr(cuda, name)() for name in counters] == [0, 0, 0, 0]
    assert cuda.memory.max_memory_cached("cuda:1") == 0
    for reset in (
        "peak_memory_stats",
        "max_memory_allocated",
        "max_memory_cached",
        "accumulated_memory_stats",
    ):
        getattr(cuda, f"reset_{reset}")(1)
    assert cuda.memory_stats()["allocated_bytes.all.peak"] == 0
    assert cuda.memory_stats_as_nested_dict()["num_ooms"] == 0
    assert size(cuda.mem_get_info()[1]) in cuda.memory_summary(abbreviated=True)
    assert cuda.memory_snapshot() == []
    cuda.memory._record_memory_history(max_entries=10)
    cuda.set_per_process_memory_fraction(0.5)
    assert cuda.get_per_process_memory_fraction() == 0.5
    with pytest.raises(ValueError, match="Allowed range"):
        cuda.set_per_process_memory_fraction(2)
    cuda.empty_cache()
    assert kept.sum() == 1000


def test_streams(cuda: Any) -> None:
    first, second = cuda.Stream(), cuda.Stream(device=1, priority=-1)
    assert first != second != cuda.default_stream()
    with cuda.stream(second):
        assert cuda.current_stream() == cuda.current_stream(1) == second
        assert cuda.current_device() == 1
    assert cuda.current_stream() == cuda.current_stream(1 - 1) == cuda.default_stream()
    assert (cuda.current_device(), cuda.current_stream(1)) == (0, cuda.default_stream(1))
    with cuda.stream(None):
        assert cuda.current_stream() == cuda.default_stream()
    first.wait_stream(second)
    first.wait_event(second.record_event())
    first.synchronize()
    assert first.query() and first.cuda_stream == first.stream_id
    assert isinstance(first, cuda.streams.Stream) and cuda.Stream.priority_range() == (0, -1)


def test_events_tell_the_time_between_them(cuda: Any) -> None:
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    time.sleep(0.01)
    end.record(cuda.current_stream())
    end.wait()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 10 > end.elapsed_time(start)
    with pytest.raises(RuntimeError, match="enable_timing"):
        cuda.Event().elapsed_time(end)
    with pytest.raises(NotImplementedError, match="shared between processes"):
        cuda.Event(interprocess=True)


def test_randomness_is_the_cpus(cuda: Any) -> None:
    for seed in (cuda.manual_seed, cuda.manual_seed_all, cuda.random.manual_seed):
        seed(5)
        assert torch.initial_seed() == cuda.initial_seed() == 5
    states = cuda.get_rng_state_all()
    drawn = torch.rand(3)
    cuda.set_rng_state_all(states)
    assert torch.equal(drawn, torch.rand(3))
    cuda.set_rng_state(states[0], "cuda:3")
    assert torch.equal(drawn, torch.rand(3))
    cuda.seed()
    assert torch.initial_seed() != 5
    assert cuda.default_generators == (torch.default_generator,) * 4
    torch.manual_seed(0)


def test_autocast_is_the_cpus_in_float16(cuda: Any) -> None:
    x = torch.ones(2, 2)
    with cuda.amp.autocast():
        assert (x @ x).dtype is torch.float16
        with cuda.amp.autocast(False):
            assert (x @ x).dtype is torch.float32
    with cuda.amp.autocast_mode.autocast(True, torch.bfloat16):
        assert (x @ x).dtype is torch.bfloat16
    assert cuda.amp.common.amp_definitely_not_available() is False


def test_the_scaler_scales_and_skips(cuda: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.5)
    scaler = cuda.amp.GradScaler(init_scale=8.0)
    for factor, expected in ((1.0, 0.5), (float("inf"), 0.5), (1.0, 0.0)):
        optimizer.zero_grad()
        scaler.scale(weight.sum() * factor).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert weight.tolist() == [expected] * 2
    assert scaler.get_scale() == 4.0


def test_custom_casts(cuda: Any) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        @cuda.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x @ x

        @staticmethod
        @cuda.amp.custom_bwd
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    with cuda.amp.autocast():
        assert Twice.apply(torch.ones(2, 2, dtype=torch.float16)).dtype is torch.float32  # type: ignore[no-untyped-call]


def test_typed_tensors_are_the_cpus(cuda: Any) -> None:
    assert cuda.FloatTensor is torch.FloatTensor
    assert isinstance(torch.ones(1), cuda.FloatTensor)
    assert cuda.LongTensor([1, 2]).dtype is torch.int64
    assert cuda.HalfStorage is torch.HalfStorage
    assert issubclass(cuda.OutOfMemoryError, RuntimeError)


def test_a_graph_is_replayed_and_its_capture_computes_nothing(cuda: Any) -> None:
    graph, total = cuda.CUDAGraph(), torch.zeros(2)
    state = torch.get_rng_state()
    with cuda.graph(graph):
        total.add_(1)
        drawn = torch.rand(2)
    assert total.tolist() == [0, 0]
    assert torch.equal(torch.get_rng_state(), state)
    expected = torch.rand(2)
    torch.set_rng_state(state)
    graph.replay()
    assert torch.equal(drawn, expected)
    graph.replay()
    assert total.tolist() == [2, 2]
    assert not torch.equal(drawn, expected)


def test_what_has_no_meaning_says_so(cuda: Any) -> None:
    for name in ("MemPool", "caching_allocator_alloc", "nonsense"):
        with pytest.raises(AttributeError, match=f"has no '{name}': the CPU has no equivalent"):
            getattr(cuda, name)
    with pytest.raises(AttributeError, match=r"torch\.cuda on the CPU\.memory has no 'MemPool'"):
        _ = cuda.memory.MemPool


def test_every_name_is_one_of_cudas(cuda: Any) -> None:
    def strange(stand_in: ModuleType, original: Any) -> list[str]:
        found = []
        for name, value in vars(stand_in).items():
            if name.startswith("__"):
                continue
            if not hasattr(original, name):
                found.append(name)
            elif isinstance(value, ModuleType):
                found += strange(value, getattr(original, name))
        return found

    assert strange(cuda, torch.cuda) == []


def test_the_sync_debug_mode_is_remembered(cuda: Any) -> None:
    cuda.set_sync_debug_mode("warn")
    assert cuda.get_sync_debug_mode() == 1
    with pytest.raises(RuntimeError, match="expected one of"):
        cuda.set_sync_debug_mode("loud")


def test_asking_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host_module(1)
