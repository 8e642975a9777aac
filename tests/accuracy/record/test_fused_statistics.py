"""Figures of a device's tensors by kernels of ours: what is put, launched and fetched when. The kernels themselves are
Triton's; here others stand for them, which read memory of the host."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.accuracy.record import host_kernels
from tests.accuracy.record.recording import make_recorder
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.model import ROW, Kept
from torchferry.accuracy.native.library import decode, statistics_of
from torchferry.accuracy.record import fused_statistics, quick_observer
from torchferry.accuracy.record import recorder as recording
from torchferry.accuracy.record.device_statistics import DeviceStatistics
from torchferry.accuracy.record.layout import Layouts

if quick_observer.build() is None:
    pytest.skip("no C++ compiler or no Python.h: operators do it all", allow_module_level=True)

KERNELS = "torchferry.accuracy.record.triton_kernels"


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of the host are taken for a device's, and kernels for the host stand for Triton's."""
    monkeypatch.setitem(sys.modules, KERNELS, host_kernels)
    monkeypatch.setattr(recording, "host_devices", frozenset)
    host_kernels.launches.clear()


class Put:
    """A tensor that was put, and the row that its figures come to."""

    def __init__(self, devices: DeviceStatistics, tensor: torch.Tensor) -> None:
        self.given, self.tensor = tensor, tensor.clone()  # memory is read later
        self.row = ctypes.create_string_buffer(ROW.size)
        devices.put(tensor, Layouts(frozenset()).of(tensor), ctypes.addressof(self.row))

    def assert_has_come(self) -> None:
        """The figures are those of the tensor as it was."""
        contents = self.tensor.contiguous()
        name = str(contents.dtype).removeprefix("torch.")
        assert decode(self.row) == statistics_of(contents.data_ptr(), name, contents.numel())


def test_what_is_written_after_a_launch_does_not_count() -> None:
    devices = DeviceStatistics()
    x = torch.randn(1000)
    before = Put(devices, x)
    devices.launch()
    x.zero_()
    after = Put(devices, x)
    devices.launch()
    devices.fetch()
    before.assert_has_come()
    after.assert_has_come()
    assert devices.problems == ()


def test_tensors_of_several_types_together() -> None:
    devices = DeviceStatistics()
    tensors = [
        torch.randn(n).to(dtype)
        for n in (3, 70_000)
        for dtype in (torch.float32, torch.bfloat16, torch.float64)
    ]
    tensors += [
        torch.arange(9),
        torch.ones(5, dtype=torch.bool),
        torch.randn(6)[1:],
        torch.randn(4, 4)[:, ::2],
    ]
    put = [Put(devices, tensor) for tensor in tensors]
    devices.launch()
    devices.fetch()
    for each in put:
        each.assert_has_come()


def test_more_than_a_batch_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_statistics, "_TENSORS", 7)
    monkeypatch.setattr(fused_statistics, "_PARTIALS", 64)
    devices = DeviceStatistics()
    put = [Put(devices, torch.randn(n * 5000 + 1)) for n in range(40)]
    devices.launch()
    devices.fetch()
    for each in put:
        each.assert_has_come()


def test_what_was_dropped_is_never_read() -> None:
    devices = DeviceStatistics()
    lost = Put(devices, torch.randn(10))
    devices.drop()
    kept = Put(devices, torch.randn(10))
    devices.launch()
    devices.fetch()
    kept.assert_has_come()
    assert lost.row.raw == bytes(ROW.size)


def test_a_step_ends_without_waiting() -> None:
    """The rows come over once for each step, and all are there in the end."""
    devices = DeviceStatistics()
    put = []
    for _ in range(6):
        put += [Put(devices, torch.randn(20)) for _ in range(3)]
        devices.launch()
        devices.settle()
    devices.fetch()
    for each in put:
        each.assert_has_come()
    assert host_kernels.launches.count("_write_rows") == 1 + 6  # one for the trial of this type


def test_elements_that_kernels_get_wrong_are_left_to_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_kernels, "sum_up", host_kernels.HostKernel(lambda *_: None))
    devices = DeviceStatistics()
    put = Put(devices, torch.randn(1000))
    devices.launch()
    devices.fetch()
    assert decode(put.row).count == 1000
    (problem,) = devices.problems
    assert problem.startswith("cpu: float32: ")


def _trained(path: Path) -> Record:
    torch.manual_seed(0)
    recorder = make_recorder(path, Kept.STATISTICS)
    recorder.start()
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(inplace=True), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        recorder.next_step()
    recorder.stop()
    return open_record(path)


def test_a_training_is_recorded_as_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_device = _trained(tmp_path / "device.h5")
    assert "_sum_up" in host_kernels.launches
    monkeypatch.setattr(recording, "host_devices", lambda: frozenset({"cpu"}))
    on_host = _trained(tmp_path / "host.h5")
    assert list(map(str, on_device.calls)) == list(map(str, on_host.calls))
