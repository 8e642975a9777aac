"""Tensors that are not in memory of the host: statistics by the device's own operators, bytes by copies."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest
import torch

from tests.accuracy.record.recording import call_of, inputs_of, recorded
from tests.forking import run_forked
from torchferry.accuracy.model import ROW, Kept
from torchferry.accuracy.native.library import decode, statistics_of
from torchferry.accuracy.record import recorder as recording
from torchferry.accuracy.record import staged_statistics
from torchferry.accuracy.record.device_statistics import DeviceStatistics
from torchferry.accuracy.record.layout import Layouts, flat

ODD = torch.tensor([1.5, -3.0, 0.0, float("nan"), float("inf"), -float("inf"), 2.0])


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(1001),
        ODD,
        ODD.bfloat16(),
        ODD.half(),
        ODD.double(),
        torch.full((3,), float("nan")),
        torch.tensor([5, -7, 0]),
        torch.tensor([True, False, True]),
        torch.arange(11, dtype=torch.uint8)[3:],
        torch.randn(7, dtype=torch.complex64),
        torch.randn(3, 4).t(),
        torch.tensor(2.5),
        torch.randn(3, 4)[:, ::2],
        torch.randn(1, 4).expand(3, 4),
        torch.randn(5000, dtype=torch.float16),
        torch.arange(40_001) - 7,
        torch.randn(70_001),
        torch.randn(3, dtype=torch.complex64).conj(),
    ],
    ids=lambda tensor: f"{tensor.dtype}{tuple(tensor.shape)}",
)
@pytest.mark.parametrize("staging", [1 << 16, 1 << 24], ids=["in turns", "at once"])
def test_a_device_finds_what_the_host_finds(
    monkeypatch: pytest.MonkeyPatch, tensor: torch.Tensor, staging: int
) -> None:
    monkeypatch.setattr(staged_statistics, "_STAGING", staging)
    layout = Layouts(frozenset()).of(tensor)
    before, row, after = (ctypes.create_string_buffer(ROW.size) for _ in range(3))
    devices = DeviceStatistics()
    for each, address in ((tensor * 3, before), (tensor, row), (tensor * 2, after)):  # what lies around it
        devices.put(each, Layouts(frozenset()).of(each), ctypes.addressof(address))
    devices.fetch()
    kept = flat(tensor, layout)  # as a record has it
    found, expected = decode(row), statistics_of(kept.data_ptr(), layout.dtype, layout.elements)
    assert (found.count, found.nans, found.infinities, found.zeros) == (
        expected.count,
        expected.nans,
        expected.infinities,
        expected.zeros,
    )
    assert found.checksum == expected.checksum
    assert (found.minimum, found.maximum) == (expected.minimum, expected.maximum)
    assert found.mean == pytest.approx(expected.mean, rel=1e-12)
    assert found.rms == pytest.approx(expected.rms, rel=1e-12)


def test_more_than_can_be_staged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_statistics, "_STAGING", 256)
    devices, layouts = DeviceStatistics(), Layouts(frozenset())
    rows = [ctypes.create_string_buffer(ROW.size) for _ in range(20)]
    for number, row in enumerate(rows):
        tensor = torch.full((30,), float(number))
        devices.put(tensor, layouts.of(tensor), ctypes.addressof(row))
    devices.fetch()
    assert [decode(row).mean for row in rows] == list(range(20))


@pytest.mark.parametrize("kept", list(Kept))
def test_memory_that_can_not_be_read_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Kept
) -> None:
    monkeypatch.setattr(recording, "host_devices", lambda: frozenset())
    x = torch.arange(12.0).view(3, 4)

    def program() -> None:
        x.t().neg()
        x[:, ::2].abs()
        x.add_(1).exp()

    record = recorded(tmp_path, program, kept)
    if kept is Kept.STATISTICS:
        found = call_of(record, "exp").inputs[0].statistics
        assert found is not None and (found.mean, found.maximum) == (6.5, 12)
        return
    assert torch.equal(inputs_of(record, "neg")[0], torch.arange(12.0).view(3, 4).t())
    assert torch.equal(inputs_of(record, "abs")[0], torch.arange(12.0).view(3, 4)[:, ::2])
    assert torch.equal(inputs_of(record, "exp")[0], torch.arange(1.0, 13).view(3, 4))


_SIMULATED = """
import sys
from pathlib import Path
import torch
from torchferry import sim
sim.activate("ascend", devices=1)
sys.path.insert(0, {root!r})
from tests.accuracy.record.recording import recorded, call_of, inputs_of
from torchferry.accuracy.model import Kept

x = torch.arange(6.0, device="npu").view(2, 3)
expected = torch.arange(6.0).view(2, 3)
for kept in (Kept.TENSORS, Kept.STATISTICS):
    record = recorded(Path({folder!r}), lambda: (x.t().neg(), torch.rand(4, device="npu")), kept)
    call = call_of(record, "neg")
    assert call.inputs[0].device == "npu:0", call
    if kept is Kept.TENSORS:
        assert torch.equal(inputs_of(record, "neg")[0], expected.t())
        drawn = next(call for call in record.calls if call.random)
        assert drawn.random.device.startswith("npu"), drawn
    else:
        assert call.inputs[0].statistics.mean == 2.5
print("fine")
"""


def test_a_simulated_device_is_memory_of_the_host(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    done = run_forked(_SIMULATED.format(root=root, folder=str(tmp_path)), os.environ)
    assert done.stdout.strip().endswith("fine"), done.stderr
