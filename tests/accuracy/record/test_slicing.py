"""Large tensors of which slices are kept, with the statistics of the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
import torch

from tests.accuracy.record.recording import call_of
from torchferry.accuracy.file.convert import Form, convert
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record import recorder as recording
from torchferry.accuracy.record import sinks
from torchferry.accuracy.record.recorder import Recorder
from torchferry.accuracy.record.slicing import Slicing

HEADER = RecordHeader(Kept.TENSORS, "test", "cpu", torch.__version__)


@pytest.fixture(params=["host", "device"], autouse=True)
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU's memory as it is, and as if it were a device's."""
    if request.param == "device":
        for module in (recording, sinks):
            monkeypatch.setattr(module, "host_devices", lambda: frozenset())


def recorded(path: Path, program: Callable[[], object]) -> Record:
    """Three slices of what is larger than 4,000 bytes."""
    recorder = Recorder(path / "record.h5", HEADER, slicing=Slicing(4000, 3))
    recorder.start()
    program()
    recorder.stop()
    return open_record(path / "record.h5")


@pytest.mark.parametrize(
    ("tensor", "slices"),
    [
        pytest.param(torch.randn(10, 200), (slice(0, 9, 3),), id="rows"),
        pytest.param(torch.randn(3, 2, 500), (slice(None), slice(None), slice(0, 498, 166)), id="few rows"),
        pytest.param(torch.randn(200, 10).t(), (slice(0, 9, 3),), id="transposed"),
        pytest.param(torch.randn(20, 200)[:, ::2], (slice(0, 18, 6),), id="with gaps"),
        pytest.param(torch.randn(2000, dtype=torch.complex64).conj(), (slice(0, 1998, 666),), id="conjugate"),
        pytest.param(torch.randn(5000).bfloat16(), (slice(0, 4998, 1666),), id="one dimension"),
    ],
)
def test_slices_and_statistics_of_the_whole(
    tmp_path: Path, tensor: torch.Tensor, slices: tuple[slice, ...]
) -> None:
    record = recorded(tmp_path, lambda: tensor.clone().neg())
    (given,) = call_of(record, "clone").inputs
    assert given.offset is None and given.part is not None and given.kept_part is not None
    assert torch.equal(record.tensor(given.kept_part), tensor[slices].resolve_conj())
    assert given.statistics is not None and given.statistics.count == tensor.numel() * (
        2 if tensor.is_complex() else 1
    )
    with h5py.File(tmp_path / "record.h5") as file:
        dataset = file[f"clone/1/{given.name}"]
        assert dataset.shape == given.kept_part.shape and tuple(dataset.attrs["Part"]) == given.part[1:]


def test_what_is_small_or_has_no_more_slices_is_whole(tmp_path: Path) -> None:
    record = recorded(
        tmp_path, lambda: (torch.ones(900).neg(), torch.ones(1, 1, 900).expand(5, 3, 900).sum())
    )
    assert all(each.part is None for call in record.calls for each in (*call.inputs, *call.outputs))


def test_the_same_memory_in_another_shape(tmp_path: Path) -> None:
    x = torch.randn(10, 200)
    record = recorded(tmp_path, lambda: (x.exp(), x.t().exp(), x.exp(), x.add_(1), x.exp()))
    inputs = [call.inputs[0] for call in record.calls if call.operator == "aten::exp"]
    kept = [record.tensor(each.kept_part) for each in inputs if each.kept_part]
    assert torch.allclose(kept[0] + 1, kept[3]) and torch.equal(kept[0], kept[2])
    assert torch.allclose(kept[1], (x - 1).t()[0:198:66])
    assert inputs[0].content == inputs[1].content != inputs[3].content


def test_as_files_of_their_own(tmp_path: Path) -> None:
    recorded(tmp_path, lambda: torch.ones(10, 200).neg()).close()
    assert convert(tmp_path / "record.h5", tmp_path / "files", Form.NPY) == 3
    assert (tmp_path / "files/2_neg/output/output_0.slices.npy").exists()
