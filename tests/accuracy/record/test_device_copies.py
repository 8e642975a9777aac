"""Tensors that come over from a device while the program goes on. What no hardware is needed for; on a GPU,
test_recorder_cuda.py."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch

from tests.accuracy.record.recording import call_of, inputs_of, make_recorder, names, recorded
from tests.forking import run_forked
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.record import device_copies
from torchferry.accuracy.record import recorder as recording


@pytest.fixture(params=[1 << 20, 1 << 28], ids=["through a small ring", "through a large ring"])
def far(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU's memory is taken for a device's."""
    monkeypatch.setattr(recording, "host_devices", lambda: frozenset())
    monkeypatch.setattr(device_copies, "RING", request.param)


@pytest.mark.usefixtures("far")
def test_tensors_are_as_they_were_at_the_call(tmp_path: Path) -> None:
    x = torch.arange(300_000.0).view(300, 1000)

    def program() -> None:
        x.neg_().add_(1)
        x.t().sin()
        x[:, ::2].cos()
        x.mul_(0)

    record = recorded(tmp_path, program)
    first = torch.arange(300_000.0).view(300, 1000)
    assert torch.equal(inputs_of(record, "neg_")[0], first)
    assert torch.equal(record.tensor(call_of(record, "neg_").outputs[0]), -first)
    assert torch.equal(inputs_of(record, "add_.Tensor")[0], -first)
    assert torch.equal(inputs_of(record, "sin")[0], (1 - first).t())
    assert torch.equal(inputs_of(record, "cos")[0], (1 - first)[:, ::2])
    assert record.header.complete and record.header.notes == ()


@pytest.mark.usefixtures("far")
def test_the_program_goes_on_without_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = make_recorder(tmp_path / "record.h5")
    recorder.start()
    torch.ones(2).neg()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    recorder._writer.drain()  # type: ignore[union-attr]
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        for _ in range(20):
            assert torch.ones(100_000).neg().sum().item() == -100_000
        recorder._writer.drain()  # type: ignore[union-attr]
    recorder.stop()
    assert "No space" in recorder.failed
    assert names(open_record(tmp_path / "record.h5"))[:2] == ["ones", "neg"]


_SIMULATED = """
import sys
from pathlib import Path
import torch
from torchferry import sim
sim.activate("ascend", devices=2)
sys.path.insert(0, {root!r})
from torchferry.accuracy.record import device_copies
from torchferry.accuracy.record import recorder as recording
recording.host_devices = lambda: frozenset({{"cpu"}})  # as if it had memory of its own
from tests.accuracy.record.recording import recorded, inputs_of

waited = []
event = torch.npu.Event
class Counted(event):
    def record(self, stream=None):
        waited.append(stream)
        super().record(stream)
torch.npu.Event = Counted

def program():
    x = torch.arange(6.0, device="npu").view(2, 3)
    x.t().neg()
    with torch.npu.stream(torch.npu.Stream()):
        x.add_(1).cos()
    torch.ones(3, device="npu:1").sin()
    torch.ones(3).exp()

record = recorded(Path({folder!r}), program)
assert torch.equal(inputs_of(record, "neg")[0], torch.arange(6.0).view(2, 3).t())
assert torch.equal(inputs_of(record, "cos")[0], torch.arange(6.0).view(2, 3) + 1)
assert torch.equal(inputs_of(record, "sin")[0], torch.ones(3))
assert torch.equal(inputs_of(record, "exp")[0], torch.ones(3))
assert len(set(map(str, waited))) == 3, waited  # two streams of the first device, one of the second
print("fine")
"""


def test_streams_and_events_of_a_vendor(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    done = run_forked(_SIMULATED.format(root=root, folder=str(tmp_path)), os.environ)
    assert done.stdout.strip().endswith("fine"), done.stderr
