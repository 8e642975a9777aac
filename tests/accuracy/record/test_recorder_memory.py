"""Contents are stored once, and never those of another time: memory that is freed, moved, or written to unseen."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from tests.accuracy.record.recording import call_of, inputs_of, make_recorder, recorded
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Kept


def means_of(path: Path, function: Callable[[], object], operator: str, kept: Kept) -> list[float]:
    """Of what the calls of an operator were given first."""
    record = recorded(path, function, kept)
    if kept is not Kept.STATISTICS:
        return [tensor.double().mean().item() for tensor in inputs_of(record, operator)]
    calls = [call for call in record.calls if call.operator == f"aten::{operator}"]
    return [call.inputs[0].statistics.mean for call in calls if call.inputs[0].statistics]


def test_the_same_contents_are_stored_once(tmp_path: Path) -> None:
    x = torch.randn(1000)
    record = recorded(tmp_path, lambda: [x.neg() for _ in range(5)])
    assert len({call.inputs[0].offset for call in record.calls}) == 1
    assert record.path.stat().st_size < 6.5 * 4000 + 20_000


@pytest.mark.parametrize("kept", [Kept.STATISTICS, Kept.TENSORS])
def test_a_freed_storage_is_not_mistaken_for_the_next_one(tmp_path: Path, kept: Kept) -> None:
    def program() -> None:
        for value in range(50):  # the allocator gives the same memory again
            torch.full((64,), float(value)).neg()

    assert means_of(tmp_path, program, "neg", kept) == list(range(50))


@pytest.mark.parametrize("kept", [Kept.STATISTICS, Kept.TENSORS])
def test_memory_that_numpy_refills(tmp_path: Path, kept: Kept) -> None:
    buffer = np.zeros(4, dtype=np.float32)
    batch = torch.from_numpy(buffer)

    def program() -> None:
        for value in (1, 2, 2, 3):
            buffer[:] = value
            batch.neg()

    assert means_of(tmp_path, program, "neg", kept) == [1, 2, 2, 3]
    calls = open_record(tmp_path / "record.h5").calls
    assert len({call.inputs[0].content for call in calls}) == 3  # the two that are the same were stored once


def test_memory_that_comes_to_be_shared(tmp_path: Path) -> None:
    x = torch.ones(4)

    def program() -> None:
        x.neg()
        x.share_memory_()
        x.neg()
        np.asarray(x)[:] = 5
        x.neg()

    assert means_of(tmp_path, program, "neg", Kept.TENSORS) == [1, 1, 5]


def test_tensors_that_get_other_memory(tmp_path: Path) -> None:
    x, other = torch.ones(4), torch.full((4,), 2.0)
    weight = nn.Parameter(torch.full((4,), 3.0))

    def program() -> None:
        x.neg()
        x.set_(other)
        x.neg()
        weight.detach().neg()
        weight.data = torch.full((4,), 4.0)
        weight.detach().neg()

    assert means_of(tmp_path, program, "neg", Kept.TENSORS) == [1, 2, 3, 4]


def test_a_storage_that_is_emptied_and_filled_again(tmp_path: Path) -> None:
    """As FullyShardedDataParallel does it with its parameters."""
    x, size = torch.ones(4), 16
    full = torch.full((4,), 2.0)

    def program() -> None:
        x.neg()
        x.untyped_storage().resize_(0)
        x.untyped_storage().resize_(size)
        x.copy_(full)
        x.neg()

    assert means_of(tmp_path, program, "neg", Kept.TENSORS) == [1, 2]


def test_a_tensor_without_memory_is_unread(tmp_path: Path) -> None:
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    record = recorded(tmp_path, lambda: x.view(2, 2))
    assert record.calls[0].inputs[0].content == 0


def test_writes_through_other_views(tmp_path: Path) -> None:
    x = torch.zeros(4, 4)

    def program() -> None:
        x.neg()
        x[1].add_(4)
        x.neg()
        x.data.add_(1)  # counted by a counter of its own
        x.neg()
        with torch.inference_mode():
            x.add_(1)
        x.neg()

    assert means_of(tmp_path, program, "neg", Kept.TENSORS) == [0, 1, 2, 3]


def test_writes_that_only_the_version_tells(tmp_path: Path) -> None:
    x = torch.zeros(4)
    recorder = make_recorder(tmp_path / "record.h5")
    recorder.start()
    x.neg()
    with recorder.out_of_sight():
        x.add_(1)
    x.neg()
    recorder.stop()
    assert [tensor[0].item() for tensor in inputs_of(open_record(tmp_path / "record.h5"), "neg")] == [0, 1]


def test_inference_tensors(tmp_path: Path) -> None:
    def program() -> None:
        with torch.inference_mode():
            x = torch.zeros(4)
            for _ in range(3):
                x.neg()
                x.add_(1)

    assert means_of(tmp_path, program, "neg", Kept.TENSORS) == [0, 1, 2]


def test_parts_of_one_buffer_that_are_updated_in_turn(tmp_path: Path) -> None:
    flat = torch.zeros(3, 8)

    def program() -> None:
        for part in flat:
            part.neg()
        for part in flat:
            part.add_(1)
        for part in flat:
            part.neg()

    record = recorded(tmp_path, program)
    assert [tensor[0].item() for tensor in inputs_of(record, "neg")] == [0, 0, 0, 1, 1, 1]
    written = [call.outputs[0].content for call in record.calls if call.operator == "aten::add_.Tensor"]
    read = [call.inputs[0].content for call in record.calls if call.operator == "aten::neg"][3:]
    assert read == written


def test_an_operator_that_writes_to_what_its_schema_does_not_say(tmp_path: Path) -> None:
    library = torch.library.Library("torchferry_test_record", "DEF")
    library.define("fill_silently(Tensor x) -> Tensor")

    def fill(x: torch.Tensor) -> torch.Tensor:
        np.asarray(x)[:] = 9
        return x + 0

    library.impl("fill_silently", fill, "CPU")
    x = torch.zeros(4)

    def program() -> None:
        x.neg()
        torch.ops.torchferry_test_record.fill_silently(x)
        x.neg()

    assert means_of(tmp_path, program, "neg", Kept.TENSORS) == [0, 9]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """A process group of this process."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{path / 'store'}", rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def test_what_collectives_write_to_is_read_again(tmp_path: Path) -> None:
    x, received = torch.ones(4), torch.zeros(4)

    def program() -> None:
        received.neg()
        work = dist.all_gather_into_tensor(received, x, async_op=True)
        work.wait()
        received.neg()
        np.asarray(received)[:] = 7  # a collective that ends late
        received.neg()

    with alone(tmp_path):
        assert means_of(tmp_path, program, "neg", Kept.TENSORS) == [0, 1, 7]
    calls = [call for call in open_record(tmp_path / "record.h5").calls if call.operator.startswith("c10d::")]
    assert calls and all(tensor.content == 0 for call in calls for tensor in call.outputs)


def test_distributed_training(tmp_path: Path) -> None:
    with alone(tmp_path):
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
        record = recorded(tmp_path, lambda: model(torch.ones(2, 3)).sum().backward())
    assert {call.module for call in record.calls if call.operator == "aten::addmm"} == {"Linear"}
    assert any(call.operator.startswith("c10d::") for call in record.calls)


def test_data_is_not_kept_alive(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path / "record.h5")
    recorder.start()
    x = torch.randn(1000).neg()
    gone = weakref.ref(x.untyped_storage())
    head = x.untyped_storage()._weak_ref()
    del x
    gc.collect()
    assert torch.UntypedStorage._expired(head)
    recorder.stop()
    torch.UntypedStorage._free_weak_ref(head)
    del gone


def test_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path / "record.h5", Kept.STATISTICS)
    recorder.start()
    x = torch.ones(2)
    for _ in range(5000):
        x.neg()
    known = len(recorder._contents)
    recorder.stop()
    assert known < 3000


def test_a_copy_that_was_made_before_a_write_stays(tmp_path: Path) -> None:
    x = torch.zeros(2)
    record = recorded(tmp_path, lambda: (x.add_(1), x.add_(1), x.add_(1)))
    outputs = [record.tensor(call.outputs[0])[0].item() for call in record.calls]
    inputs = [record.tensor(call.inputs[0])[0].item() for call in record.calls]
    assert (inputs, outputs) == ([0, 1, 2], [1, 2, 3])


def test_statistics_are_those_of_the_tensor(tmp_path: Path) -> None:
    x = torch.tensor([1.0, -3.0, 0.0, float("nan"), float("inf")])
    record = recorded(tmp_path, lambda: x.neg(), Kept.STATISTICS)
    found = call_of(record, "neg").inputs[0].statistics
    assert found is not None
    assert (found.count, found.nans, found.infinities, found.zeros) == (5, 1, 1, 1)
    assert (found.minimum, found.maximum, found.mean) == (-3, 1, pytest.approx(-2 / 3))


def test_a_storage_among_the_arguments_is_described_not_printed(tmp_path: Path) -> None:
    source = torch.arange(4096.0)
    record = recorded(tmp_path, lambda: torch.empty(0).set_(source.untyped_storage()))
    (call,) = (call for call in record.calls if call.operator.startswith("aten::set_"))
    assert "16384 bytes on cpu" in str(call.arguments) and len(str(call.arguments)) < 400
