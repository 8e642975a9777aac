"""On a real GPU, where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.accuracy.record.recording import call_of, inputs_of, recorded
from torchferry.accuracy.model import Kept
from torchferry.accuracy.record import device_copies

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def test_statistics_are_the_same_on_both(tmp_path: Path) -> None:
    values = torch.randn(1001)
    on_gpu = values.cuda()
    found = []
    for tensor in (values, on_gpu, on_gpu.bfloat16().float()):
        record = recorded(tmp_path, lambda tensor=tensor: tensor.neg(), Kept.STATISTICS)
        found.append(call_of(record, "neg").inputs[0].statistics)
    assert found[0] is not None and found[1] is not None and found[2] is not None
    assert found[0].checksum == found[1].checksum != found[2].checksum
    assert found[0].mean == pytest.approx(found[1].mean, rel=1e-12)


def test_bytes_and_generators(tmp_path: Path) -> None:
    x = torch.randn(64, 64, device="cuda")
    record = recorded(tmp_path, lambda: (x.t().neg(), functional.dropout(x, 0.5)))
    assert torch.equal(inputs_of(record, "neg")[0], x.t().cpu())
    drawn = call_of(record, "native_dropout")
    assert drawn.random is not None and drawn.random.device == "cuda:0"
    state = torch.frombuffer(bytearray(record.state(drawn.random)), dtype=torch.uint8)
    torch.cuda.set_rng_state(state)
    assert torch.equal(functional.dropout(x, 0.5).cpu(), record.tensor(drawn.outputs[0]))


def test_a_copy_to_the_host_that_is_under_way(tmp_path: Path) -> None:
    x = torch.full((1 << 24,), 3.0, device="cuda")
    host = torch.zeros(1 << 24, pin_memory=True)
    record = recorded(tmp_path, lambda: host.copy_(x, non_blocking=True), Kept.STATISTICS)
    after = call_of(record, "copy_").outputs[0].statistics
    assert after is not None and after.mean == 3


def test_training_computes_the_same(tmp_path: Path) -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(), nn.Flatten()
        ).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 3, 8, 8, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    torch.backends.cudnn.deterministic = True
    expected = train()
    for kept in Kept:
        found: list[float] = []
        record = recorded(tmp_path, lambda found=found: found.extend(train()), kept)
        assert found == expected and record.header.notes == ()
        assert {call.phase for call in record.calls} == {"forward", "backward", "optimizer"}


def test_graphs(tmp_path: Path) -> None:
    x, graph = torch.zeros(4, device="cuda"), torch.cuda.CUDAGraph()
    x.add(1)

    def program() -> None:
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            x.add_(1)
        x.neg()
        graph.replay()
        x.neg()

    record = recorded(tmp_path, program)
    assert [tensor[0].item() for tensor in inputs_of(record, "neg")] == [0, 1]
    assert record.header.notes == ("graphs",)
    assert call_of(record, "add_.Tensor").outputs[0].unread == "CapturingError"


def test_memory_that_is_written_to_again_before_its_copy_has_come(tmp_path: Path) -> None:
    """Copies are behind a long computation; what comes after them writes to the same memory, and to what was freed."""
    size = 1 << 22

    def program() -> None:
        slow = torch.randn(4096, 4096, device="cuda")
        for _ in range(20):
            slow = slow @ slow / 64
        x = torch.full((size,), 1.0, device="cuda")
        for _ in range(10):
            x.add_(1)
        for number in range(10):
            torch.full((size,), float(number), device="cuda").neg()  # gets the memory of the one before
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.mul_(2)

    record = recorded(tmp_path, program)
    found = [call for call in record.calls if call.operator == "aten::add_.Tensor"]
    for number, call in enumerate(found, 1):
        assert bool((record.tensor(call.inputs[0]) == number).all())
        assert bool((record.tensor(call.outputs[0]) == number + 1).all())
    for number, tensor in enumerate(inputs_of(record, "neg")):
        assert bool((tensor == number).all())
    assert bool((record.tensor(call_of(record, "mul_.Tensor").outputs[0]) == 22).all())
    assert record.header.notes == ()


def test_a_ring_that_is_smaller_than_a_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_copies, "RING", 1 << 20)
    x = torch.randn(1000, 1000, device="cuda")
    record = recorded(tmp_path, lambda: (x.t().neg(), x[:, ::2].abs(), x.bfloat16().exp()))
    assert torch.equal(inputs_of(record, "neg")[0], x.t().cpu())
    assert torch.equal(inputs_of(record, "abs")[0], x[:, ::2].cpu())
    assert torch.equal(inputs_of(record, "exp")[0], x.bfloat16().cpu())
