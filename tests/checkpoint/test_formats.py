"""Layouts beside the zip archive: NumPy's files, and the tar archive of the first releases."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from torchferry.checkpoint.fixing import repair
from torchferry.checkpoint.folders import read
from torchferry.checkpoint.loading import load_tree
from torchferry.checkpoint.model import FileFormat, Repair
from torchferry.errors import InputError


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_in_a_file_become_tensors(save: object, tmp_path: Path) -> None:
    arrays = {
        "rows": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6, dtype="i4").reshape(2, 3)),
    }
    save(tmp_path / "a.npz", **arrays)  # type: ignore[operator]
    repair(tmp_path / "a.npz", tmp_path / "b.pth", Repair())
    after = torch.load(tmp_path / "b.pth", weights_only=True)
    assert {name: tensor.tolist() for name, tensor in after.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    np.save(tmp_path / "c.npy", arrays["rows"])
    assert load_tree(read(tmp_path / "c.npy"), False)[0]["c"].tolist() == arrays["rows"].tolist()


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"holds \|O, which no tensor can hold"):
        read(tmp_path / "a.npy")


class _Referring(pickle.Pickler):
    def persistent_id(self, obj: object) -> str | None:
        return "7" if obj == "the tensor" else None


def tar_of(path: Path) -> None:
    """Two storages, of which one is a part of the other, and a transposed tensor over it."""
    numbers = torch.arange(8.0)
    storages = pickle.dumps(1, 2) + pickle.dumps((1, "cuda:0", torch.FloatStorage), 2)
    storages += struct.pack("<q", 8) + numbers.numpy().tobytes() + pickle.dumps([(2, 1, 2, 6)], 2)
    tensors = pickle.dumps(1, 2) + pickle.dumps((7, 2, torch.FloatTensor), 2)
    tensors += struct.pack("<i4x2q2qq", 2, 3, 2, 1, 3, 0)
    tree = io.BytesIO()
    _Referring(tree, 2).dump({"w": "the tensor", "epoch": 3})
    members = {
        "sys_info": pickle.dumps({}, 2),
        "storages": storages,
        "tensors": tensors,
        "pickle": tree.getvalue(),
    }
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_the_tar_layout_is_what_torch_loads(tmp_path: Path) -> None:
    tar_of(tmp_path / "a.pth")
    contents = read(tmp_path / "a.pth")
    ours, devices, ran_code = load_tree(contents, False)
    theirs = torch.load(tmp_path / "a.pth", map_location="cpu", weights_only=False)
    assert contents.format is FileFormat.LEGACY and not ran_code and set(devices.values()) == {"cuda:0"}
    assert ours["epoch"] == theirs["epoch"] and torch.equal(ours["w"], theirs["w"])
    assert ours["w"].stride() == theirs["w"].stride()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\n<!doctype html>", "a web page"),
        (b'{"error": "not found"}', "JSON"),
        (b"BZh9", "compressed with bzip2"),
        (bytes(600), "starts with zeros only"),
        (b"GGUF\x03", "a GGUF file"),
    ],
)
def test_more_that_is_no_checkpoint(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes(data)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "a.pth")


def test_archives_that_were_packed_by_hand(tmp_path: Path) -> None:
    (tmp_path / "model.pth").write_bytes(b"x")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "model.pth", "model.pth")
    with pytest.raises(InputError, match="a tar archive; unpack it first"):
        read(tmp_path / "a.tar")
