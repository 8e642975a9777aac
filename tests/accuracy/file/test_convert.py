"""Records written as .npy files and as texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.accuracy.file.making import HEADER, put, write_calls
from torchferry.accuracy.file.convert import Form, convert
from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter
from torchferry.accuracy.model import Call, Kept, RecordHeader
from torchferry.errors import InputError, OutputError


def _record(path: Path, **tensors: torch.Tensor) -> Path:
    writer = RecordWriter(path, HEADER)
    made = tuple(put(writer, tensor, f"input/{name}") for name, tensor in tensors.items())
    writer.write(Call(1, "aten::f", 1, "forward", inputs=made))
    writer.close()
    return path


def test_npy(tmp_path: Path) -> None:
    base = torch.randn(3, 4)
    tensors = {
        "plain": base,
        "turned": base.t(),
        "repeated": base[:1].expand(5, 4),
        "every_second": base[:, ::2],
        "half": base.half(),
        "brain": base.to(torch.bfloat16),
        "tiny": base.to(torch.float8_e5m2),
        "truth": base > 0,
        "complex": torch.complex(base, base),
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
    }
    path = _record(tmp_path / "gpu.h5", **tensors)
    seen: list[tuple[int, int]] = []
    assert convert(path, tmp_path / "npy", Form.NPY, lambda *state: seen.append(state)) == len(tensors)
    assert seen == [(1, 1)]
    for name, tensor in tensors.items():
        found = np.load(tmp_path / "npy" / "1_f" / "input" / f"{name}.npy")
        wanted = tensor.float() if name in ("brain", "tiny") else tensor
        assert np.array_equal(found, wanted.numpy()) and found.shape == tuple(tensor.shape), name
    assert '"operator": "aten::f"' in (tmp_path / "npy" / "1_f" / "call.json").read_text()


def test_txt(tmp_path: Path) -> None:
    value = torch.tensor([[0.1, float("nan")], [1e-45, -0.0]])
    path = _record(tmp_path / "gpu.h5", x=value.double().t(), n=torch.tensor([3, -1]), b=torch.tensor(True))
    convert(path, tmp_path / "txt", Form.TXT)
    folder = tmp_path / "txt" / "1_f" / "input"
    lines = (folder / "x.txt").read_text().splitlines()
    assert lines[:2] == ["# shape: 2x2", "# dtype: float64"]
    assert lines[2:] == [repr(each) for each in value.double().t().flatten().tolist()]
    assert (folder / "n.txt").read_text() == "# shape: 2\n# dtype: int64\n3\n-1\n"
    assert (folder / "b.txt").read_text() == "# shape: scalar\n# dtype: bool\nTrue\n"


def test_hostile_names_stay_in_the_folder(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "gpu.h5", HEADER)
    names = [
        "../../out",
        "/etc/x",
        "input/../../up",
        "input/a b\n",
        "input/A b\n",
        "input/" + "ä" * 300,
        "..",
        "call",
    ]
    tensors = tuple(put(writer, torch.tensor([1.0]), name) for name in names)
    writer.write(Call(1, "aten::f/../g", 1, "forward", inputs=tensors))
    writer.close()
    folder = tmp_path / "deep" / "npy"
    assert convert(tmp_path / "gpu.h5", folder, Form.NPY) == len(names)
    assert len(list(folder.rglob("*.npy"))) == len(names)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["deep", "gpu.h5"]
    assert [item.name for item in (tmp_path / "deep").iterdir()] == ["npy"]


def test_nothing_half_written(tmp_path: Path) -> None:
    write_calls(tmp_path / "gpu.h5", 3)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    for folder, said in ((taken, "not empty"), (tmp_path / "gpu.h5", "is a file")):
        with pytest.raises(OutputError, match=said):
            convert(tmp_path / "gpu.h5", folder, Form.NPY)

    def interrupted(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "gpu.h5", tmp_path / "new", Form.TXT, interrupted)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["gpu.h5", "taken"]
    (tmp_path / "new").mkdir()
    assert convert(tmp_path / "gpu.h5", tmp_path / "new", Form.TXT) == 6


def test_statistics_have_no_tensors(tmp_path: Path) -> None:
    StatisticsWriter(tmp_path / "run.h5", RecordHeader(Kept.STATISTICS, "", "cpu", "")).close()
    with pytest.raises(InputError, match="holds statistics but no tensors"):
        convert(tmp_path / "run.h5", tmp_path / "npy", Form.NPY)
